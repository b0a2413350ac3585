"""Supervised diffusion maps (Mendelman and Talmon 2025) beside the iterated map: 300 rows of two manifolds, and the yachts of their example.

The normalised squared error of five neighbours in the embedding, for new rows. Theirs has two coordinates, and the place between both
kernels that does best for the training rows without themselves; ours has its defaults. Run by hand, with a clone of their repository:
`git clone https://github.com/harel147/sdm && python bench/sdm.py sdm`
"""

import contextlib
import io
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import LeaveOneOut, cross_val_predict, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from idm_nb import IteratedDiffusionMap
from idm_nb.datasets import feature_example

NEAR, PLACES = KNeighborsRegressor(5), (0.01, 0.03, 0.1)
SCALED = make_pipeline(StandardScaler(), NEAR)  # as in their example


def tables(path):
    "Dict from a name to training rows, new rows, and their features."
    yacht = np.loadtxt(path / "sdm_example" / "yacht_hydrodynamics.data")
    parts = train_test_split(yacht[:, :-1], yacht[:, -1], test_size=0.3, random_state=0)
    found = {"yacht": parts}
    for name in ("torus theta", "sphere x"):
        X, y, _ = feature_example(name, 600, random_state=0)
        found[name] = X[:300], X[300:], y[:300, 0], y[300:, 0]
    return found


def error(predicted, y):
    return np.mean((predicted - y) ** 2) / np.var(y)


def theirs(X, new, y):
    "Coordinates of training and new rows; features are moved above zero, because -1 marks a missing one."
    from supervised_diffusion_maps.sdm import SDM

    labels, tried = (y - y.min() + 1)[:, None], []
    for t in PLACES:
        model = SDM(n_components=2, labels_type="regression", setting="supervised")
        places = model.fit_transform(X, labels, t=t)
        tried.append(
            (error(cross_val_predict(SCALED, places, y, cv=LeaveOneOut()), y), t, places, model)
        )
    _, t, places, model = min(tried, key=lambda one: one[0])
    scale = StandardScaler().fit(places)
    return scale.transform(places), scale.transform(model.transform(new, t=t))


def ours(X, new, y):
    scale = StandardScaler().fit(X)
    model = IteratedDiffusionMap(random_state=0).fit(scale.transform(X), y)
    return model.embedding_, model.transform(scale.transform(new))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    warnings.simplefilter("ignore")
    for name, (X, new, y, new_y) in tables(Path(sys.argv[1])).items():
        for label, method in (("theirs", theirs), ("ours", ours)):
            start = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()):
                places, new_places = method(X, new, y)
            found = error(NEAR.fit(places, y).predict(new_places), new_y)
            print(
                f"{name:12} {label:7} {found:.4f}, {time.process_time() - start:.1f} s", flush=True
            )
