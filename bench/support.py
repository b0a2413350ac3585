"""How often branches with support are true, and how many true branches have it, on shapes and tables with known answers.

Run by hand: `python bench/support.py [draws] [shapes|tables]`; a draw of the shapes takes about two minutes, one of the tables
about one and a half. The support that is asked for was chosen on the families of the chapter on support. The shapes
here are ten of `branches.py`, as they are, with five columns of noise, with 300 rows, and with an estimated feature; the
tables are fitted by `TableMap`. Two branches are truly two if most of their rows lie in different components of the
level sets of a sample 25 times as large, or in tables, belong to different mechanisms.
"""

import sys
import warnings

import branches as known
import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict

from idm_nb import TableMap
from idm_nb.branches import Branches
from idm_nb.branches.support import SUPPORT, GluedGraph, pairs_with_support
from idm_nb.diffusion.numerics import Search

SHAPES = "saddle,theta R5,arm 1:10,3 spacings,cos 2 theta,two holes 1000,binary R10,lollipop,side arm,three loops"
LEVELS = 100  # a loop is cut at several of them


def components_of(X, y, many, f, near=10):
    "Component and level `(N, 2)` of each row in the level sets of `many` rows with a feature `f`."
    edges = np.linspace(f.min(), f.max(), LEVELS)[1:-1]
    level, of_many = np.searchsorted(edges, y), np.searchsorted(edges, f)
    found = np.zeros(len(X), dtype=int)
    for band in np.unique(level):
        rows, own = np.flatnonzero(of_many == band), np.flatnonzero(level == band)
        if len(rows) > near:
            search = Search(many[rows])
            beside = search.nearest(many[rows], near + 1)[0]
            starts = (near + 1) * np.arange(len(rows) + 1)
            graph = sp.csr_matrix((np.ones(beside.size), beside.ravel(), starts))
            part = connected_components(graph, directed=False)[1]
            found[own] = part[search.nearest(X[own], 1)[0][:, 0]]
    return np.c_[found, level]


def estimated(X, y, rng):
    "Held-out estimates of a feature with noise of three tenths of its deviation."
    seen, Z = y + 0.3 * y.std() * rng.normal(size=len(y)), X - X.mean(axis=0)
    grid = dict(gamma=np.array([3, 10, 30]) / np.mean(np.sum(Z**2, axis=1)), alpha=[0.03, 0.3, 3])
    best = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=3).fit(Z, seen - seen.mean())
    return cross_val_predict(best.best_estimator_, Z, seen - seen.mean(), cv=10)


def shapes(draw):
    for name in SHAPES.split(","):
        make, n, _ = (known.SHAPES | known.NEW | known.MANY)[name]
        for kind in ("plain", "noise", "300 rows", "estimated"):
            rng = np.random.default_rng([draw, 1])
            X, y = make(300 if kind == "300 rows" else n, rng)
            many, f = make(25 * n, rng)
            if name == "3 spacings":  # as far apart as the sheets of the smaller sample
                many[:, 2] *= X[:, 2].max() / many[:, 2].max()
            truth = components_of(X, y, many, f)
            if kind == "noise":
                X = np.c_[X, 0.3 * X.std(axis=0).mean() * rng.normal(size=(len(X), 5))]
            yield kind, X, estimated(X, y, rng) if kind == "estimated" else y, truth


def table(kind, n, rng):
    "A table with three numbers, three columns of noise, two of words and what `kind` adds; its feature and mechanism."
    a, b, c = rng.uniform(size=(3, n))
    rest = dict(u=rng.normal(size=n), v=rng.normal(size=n), w=rng.exponential(size=n))
    words = dict(shop=rng.choice(list("xyz"), n), hand=rng.choice(list("pq"), n))
    frame, which = dict(a=a, b=b, c=c) | rest | words, rng.integers(0, 2, n)
    if kind in ("two ways", "product", "no effect"):
        frame["catalyst"] = np.where(which, "Pd", "Cu")
    if kind == "two ways":
        return frame, np.where(which, 1.2 - a + 0.3 * b, a + 0.3 * c), which
    if kind == "product":
        return frame, np.where(which, a * b, 0.6 * (1 - a) + 0.2 * c), which
    if kind == "hump":  # its two sides meet above 1
        y = 1 - 4 * (a - 0.5) ** 2 + 0.2 * b
        return frame, y, np.where(y < 1, a > 0.5, False).astype(int)
    if kind == "subjects":
        group = rng.integers(0, 5, n)
        places = 8 * rng.normal(size=(5, 3))[group] + rng.normal(size=(n, 3))
        return frame | dict(zip("pqr", places.T)), a + 0.8 * rng.normal(size=5)[group], group
    if kind == "soft clusters":
        frame["s"] = 2.5 * which + rng.normal(size=n)
        return frame, a + 0.4 * frame["s"] + 0.3 * b, 0 * which
    if kind == "insurance":
        smoker, bmi, age = which * (rng.uniform(size=n) < 0.5), rng.normal(30, 6, n), 64 * a
        frame |= dict(bmi=bmi, a=age, smoker=np.where(smoker, "yes", "no"))
        return frame, 0.05 * age + smoker * (1.5 + 1.5 * (bmi > 30)), smoker * (1 + (bmi > 30))
    return frame, a + 0.5 * b**2 + 0.5 * np.sin(3 * c), 0 * which  # "no effect", "one way"


def tables(draw):
    kinds = "two ways,product,no effect,hump,one way,subjects,soft clusters,insurance"
    for kind in kinds.split(","):
        rng = np.random.default_rng([draw, 2])
        frame, y, mechanism = table(kind, (300, 600, 1000)[draw % 3], rng)
        level = np.searchsorted(np.linspace(y.min(), y.max(), LEVELS)[1:-1], y)
        seen = y + 0.15 * y.std() * rng.normal(size=len(y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = TableMap("y", holdout=0, random_state=draw, verbose=False)
            model = model.fit(pd.DataFrame(frame | dict(y=seen))).fitted_.model
        graph, rows = model.branches_, model.map_.rows
        first = np.unique(rows.inverse, return_index=True)[1][rows.known]
        yield kind, graph.search.points, graph.heights, np.c_[mechanism, level][first]


def truly_two(truth, first, second):
    "Do two sets of rows lie mainly in different components, at most of their common levels?"
    differ = total = 0
    for level in np.intersect1d(truth[first, 1], truth[second, 1]):
        sides = [truth[rows[truth[rows, 1] == level], 0] for rows in (first, second)]
        rows = min(map(len, sides))
        total += rows
        differ += rows * (np.bincount(sides[0]).argmax() != np.bincount(sides[1]).argmax())
    return 2 * differ > total


def judged(X, y, truth):
    "Rows (support, truly two, in one piece) of the pairs of branches that share values."
    found = Branches(X, y)
    pairs = pairs_with_support(GluedGraph(found.nodes, found.ends), found.odds)
    for a, b, low, high, odds in zip(*pairs.values()):
        here = (low <= y) & (y <= high)
        sides = [np.flatnonzero(here & (found.membership == c)) for c in (a, b)]
        yield odds, truly_two(truth, *sides), found.pieces[a] == found.pieces[b]


def main(draws=3, what="shapes"):
    found = {}
    for draw in range(draws):
        for kind, X, y, truth in dict(shapes=shapes, tables=tables)[what](draw):
            found.setdefault(kind, []).extend(judged(X, y, truth))
    for kind, rows in [*found.items(), ("all", sum(found.values(), []))]:
        if not rows:
            print(f"{kind:14} no two branches")
            continue
        odds, true, one = np.array(rows, dtype=float).T
        print(f"{kind:14} {len(rows)} pairs, {np.sum(one == 0)} of them of two pieces")
        for level in (0, 4, SUPPORT, 16, 32) if kind == "all" else (0, SUPPORT):
            shown, kept = true[odds >= level], odds[true == 1] >= level
            print(
                f"   support {level:4.0f}: {shown.mean():.3f} of {len(shown)} true, {kept.mean():.3f} kept"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, *sys.argv[2:3])
