"""The example of the home page and its three pictures: turned digits in the iterated diffusion map and in other methods.

Threes, fours and sevens are turned by known angles; no method receives the digit. A fifth of the originals is new. Counted are,
of the ten training pictures nearest to a new one, those that show the same digit, and those that also differ by at most five degrees.
Run by hand: `python bench/home.py` (about three minutes; it needs umap-learn). It writes nbs/images/home_*.png and bench/home.json.
"""

import json
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from idm_nb import IteratedDiffusionMap
from idm_nb.core.pictures import Colouring
from idm_nb.diffusion.numerics import nearest
from idm_nb.study.images import turned_classes

ROOT = Path(__file__).resolve().parent.parent
NEAR, CLOSE, SHOWN = 10, 5.0, 7  # rows, degrees, and pictures of a strip
NAMES = {
    "iterated diffusion map": "iterated\ndiffusion map",
    "nearest pixels": "nearest\npixels",
    "UMAP": "UMAP",
    "supervised UMAP": "supervised\nUMAP",
    "linear regression": "linear\nregression",
}

X, angle, original, digit = turned_classes((3, 4, 7), 9, random_state=0)
new = original % 5 == 0
known = ~new


def by_neighbours(places, new_places):
    "Places of the training and the new rows, and angles of the latter from ten neighbours."
    model = KNeighborsRegressor(NEAR).fit(places, angle[known])
    return places, new_places, model.predict(new_places)


def umap(**options):
    from umap import UMAP

    y = angle[known] if options else None
    model = UMAP(random_state=0, n_jobs=1, **options).fit(X[known], y)
    return by_neighbours(model.embedding_, model.transform(X[new]))


def linear():
    model = LinearRegression().fit(X[known], angle[known])
    places, new_places = model.predict(X[known])[:, None], model.predict(X[new])[:, None]
    return places, new_places, new_places[:, 0]


def measured(places, new_places, predicted, start):
    "Shares of the near rows, by new row, the near rows, and the numbers of a method."
    near = nearest(places, new_places, NEAR)[0]
    same = digit[known][near] == digit[new][:, None]
    close = np.abs(angle[known][near] - angle[new][:, None]) <= CLOSE
    rms = np.sqrt(np.mean((predicted - angle[new]) ** 2))
    numbers = {
        "same digit and angle": round(float(np.mean(same & close)), 3),
        "same digit": round(float(same.mean()), 3),
        "error of the angle": round(float(rms), 2),
        "seconds": round(time.process_time() - start, 1),
    }
    return (same & close).mean(axis=1), near, same & close, numbers


def compared():
    "Dict from the name of a method to what is `measured`, and the fitted map."
    start, found = time.process_time(), {}
    model = IteratedDiffusionMap(random_state=0)
    model.fit(X[known], angle[known], groups=original[known])
    predicted = model.predict(X[new])
    mine = model.embedding_, model.transform(X[new]), predicted
    found["iterated diffusion map"] = measured(*mine, start)
    others = {
        "nearest pixels": lambda: by_neighbours(X[known], X[new]),
        "UMAP": umap,
        "supervised UMAP": lambda: umap(target_metric="l2"),
        "linear regression": linear,
        **{
            f"supervised UMAP, target_weight {w}": lambda w=w: umap(
                target_metric="l2", target_weight=w
            )
            for w in (0.1, 0.25, 0.75)
        },
    }
    for name, call in others.items():
        start = time.process_time()
        found[name] = measured(*call(), start)
    return found, model


def draw(ax, picture, colour="0.6", crossed=False):
    "Draw one picture; a crossed one is paler."
    ax.imshow(picture.reshape(8, 8), cmap="gray_r", alpha=0.45 if crossed else 1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=colour, linewidth=1.5)
    if crossed:
        ax.plot([0, 7], [0, 7], color="#e0203c", lw=1.5)


def data_picture():
    some = np.random.default_rng(3).permutation(np.flatnonzero(known))[:22]
    figure, axes = plt.subplots(2, 11, figsize=(7.2, 1.75), layout="constrained")
    for ax, row in zip(axes.flat, some):
        draw(ax, X[row])
        ax.set_title(f"{angle[row]:.0f}°", fontsize=10, pad=2)
    return figure


def map_picture(model):
    "Some training pictures along the branches of the map, in the order of their numbers."
    first, branch, steps = model.embedding_[:, 0], model.branch_, np.arange(-56, 57, 14)
    ends = model.predict(X[known])
    colours = Colouring(np.arange(branch.max() + 1), "label").colours
    figure, axes = plt.subplots(len(colours), len(steps), figsize=(7.2, 2.9), layout="constrained")
    for b, strip in enumerate(axes[::-1]):
        mine = np.flatnonzero(branch == b)
        mine = mine[np.argsort(first[mine])]
        for ax, step in zip(strip, steps):
            draw(ax, X[known][mine[np.abs(ends[mine] - step).argmin()]], colours[b])
        strip[0].set_ylabel(f"branch {b}", fontsize=11, color=colours[b])
    for ax, step in zip(axes[-1], steps):
        ax.set_xlabel(f"{step}°", fontsize=11)
    return figure


def near_picture(found):
    "Strips of the nearest pictures by each method, for a new row whose shares are nearest to all means."
    shares = np.array([found[name][0] for name in NAMES])
    row = np.linalg.norm(shares - shares.mean(axis=1, keepdims=True), axis=0).argmin()
    shape = len(NAMES) + 1, SHOWN + 2
    figure, axes = plt.subplots(*shape, figsize=(7.2, 5.2), layout="constrained")
    texts = [
        "a new picture",
        *(f"{found[name][-1]['same digit and angle']:.0%} right" for name in NAMES),
    ]
    for strip, name, text in zip(axes, ["", *NAMES.values()], texts):
        for ax in strip[:2]:
            ax.axis("off")
        at = dict(ha="right", va="center", fontsize=11, transform=strip[1].transAxes)
        strip[1].text(1, 0.5, f"{name}\n{text}".strip(), **at)
    for ax in axes[0][3:]:
        ax.axis("off")
    draw(axes[0][2], X[new][row])
    axes[0][2].set_title(f"{angle[new][row]:.0f}°", fontsize=10, pad=2)
    at = dict(ha="left", va="center", fontsize=11, transform=axes[0][3].transAxes)
    text = axes[0][3].text(0.1, 0.5, "and the training pictures nearest to it", **at)
    text.set_in_layout(False)
    for strip, name in zip(axes[1:], NAMES):
        _, near, right, _ = found[name]
        for ax, other, good in zip(strip[2:], near[row], right[row]):
            draw(ax, X[known][other], crossed=not good)
            ax.set_title(f"{angle[known][other]:.0f}°", fontsize=10, pad=2)
    return figure, int(np.flatnonzero(new)[row])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    plt.switch_backend("agg")
    found, model = compared()
    for name, (*_, numbers) in found.items():
        print(f"{name:38} {numbers}", flush=True)
    figure, row = near_picture(found)
    facts = {"training rows": int(known.sum()), "new rows": int(new.sum()), "row": row}
    facts |= {"branches": model.branches_.n_branches, "verdict": str(model.verdict_)}
    facts["methods"] = {name: numbers for name, (*_, numbers) in found.items()}
    (ROOT / "bench" / "home.json").write_text(json.dumps(facts, indent=1) + "\n")
    pictures = {"data": data_picture(), "map": map_picture(model), "near": figure}
    for name, figure in pictures.items():
        figure.savefig(ROOT / "nbs" / "images" / f"home_{name}.png", dpi=110)
