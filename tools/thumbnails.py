#!/usr/bin/env python3
"""Write the first figure of the notebooks in Start and in the gallery to nbs/images/NAME.png.

The front page, the gallery and links to the site show these. Run it after such a notebook was refreshed.
"""
import base64
import json
from pathlib import Path

NBS = Path(__file__).resolve().parent.parent / "nbs"


def first_figure(path):
    "Bytes of the first figure among the outputs of a notebook."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    data = (output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
    return base64.b64decode("".join(next(d["image/png"] for d in data if "image/png" in d)))


def shown():
    "Notebooks whose first figure is shown elsewhere."
    return [NBS / "40_five_minutes.ipynb", *sorted(NBS.glob("6?_*.ipynb"))]


if __name__ == "__main__":
    for path in shown():
        (NBS / "images" / f"{path.stem}.png").write_bytes(first_figure(path))
