#!/usr/bin/env python3
"""Write the pictures of the front page and of the gallery to nbs/images: they are figures of notebooks.

Run it after such a notebook was refreshed. Links to the site show nbs/images/social.png, in the size that is usual for it.
"""

import base64
import io
import json
import re
from pathlib import Path

NBS = Path(__file__).resolve().parent.parent / "nbs"
FIVE_MINUTES, FLOW, GALLERY = (
    next(NBS.glob(name))
    for name in ("*/*five_minutes.ipynb", "*_flow/*_flow.ipynb", "*/*gallery.ipynb")
)


def figures(path):
    "Dict from label to the bytes of each labelled figure of a notebook."
    found = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        label = re.search(r"^#\|\s*label: fig-(\S+)$", "".join(cell["source"]), flags=re.M)
        for data in (out.get("data", {}) for out in cell.get("outputs", [])):
            if label and "image/png" in data:
                found[label[1]] = base64.b64decode("".join(data["image/png"]))
            elif label and "image/svg+xml" in data:
                found[label[1]] = "".join(data["image/svg+xml"]).encode()
    return found


FRONT = ("flow.svg",)  # the others are in the gallery


def pictures():
    "Dict from file name to the bytes of each picture."
    found = {f"{label.replace('-', '_')}.png": data for label, data in figures(GALLERY).items()}
    found["flow.svg"] = figures(FLOW)["flow-moving"]
    return found


def social(picture):
    "A card of 1200 x 630 pixels with a title and a picture, given and returned as bytes."
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 6.3))
    figure.text(0.5, 0.84, "Iterated diffusion maps", ha="center", size=44, weight="bold")
    text = "distance that means difference in what you care about"
    figure.text(0.5, 0.1, text, ha="center", size=26)
    ax = figure.add_axes([0.04, 0.18, 0.92, 0.6])
    ax.imshow(plt.imread(io.BytesIO(picture)), interpolation="lanczos")
    ax.set_axis_off()
    card = io.BytesIO()
    figure.savefig(card, format="png")
    return card.getvalue()


if __name__ == "__main__":
    for name, data in pictures().items():
        (NBS / "images" / name).write_bytes(data)
    (NBS / "images" / "social.png").write_bytes(social(figures(FIVE_MINUTES)["five-branches"]))
