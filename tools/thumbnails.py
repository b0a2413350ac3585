#!/usr/bin/env python3
"""Write the first figure of the notebooks in Start and in the gallery to nbs/images/NAME.png.

The front page and the gallery show these, and links to the site show nbs/images/social.png, in the size that is usual for it. Run it
after such a notebook was refreshed.
"""
import base64
import io
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


def social(picture):
    "A card of 1200 x 630 pixels with a title and a picture, given and returned as bytes."
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 6.3))
    figure.text(0.5, 0.84, "Iterated diffusion maps", ha="center", size=44, weight="bold")
    figure.text(0.5, 0.1, "distance that means difference in what you care about", ha="center", size=26)
    ax = figure.add_axes([0.04, 0.18, 0.92, 0.6])
    ax.imshow(plt.imread(io.BytesIO(picture)), interpolation="lanczos")
    ax.set_axis_off()
    card = io.BytesIO()
    figure.savefig(card, format="png")
    return card.getvalue()


if __name__ == "__main__":
    for path in shown():
        (NBS / "images" / f"{path.stem}.png").write_bytes(first_figure(path))
    (NBS / "images" / "social.png").write_bytes(social(first_figure(shown()[0])))
