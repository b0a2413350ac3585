"""Shapes with known Reeb graphs and tables without forks: how often the finder is right.

Run by hand: `python bench/branches.py [draws] [shapes|new|many|nulls|tables|sizes]`; ten draws take about a minute
each. `sizes` are all shapes with 300 and with 3000 rows. The
finder was built with the first shapes in sight; the `new` ones and those with `many` branches were tried afterwards. In the
`tables` the feature depends on groups of rows, which are pieces without it and no forks.
"""

import collections
import sys
import time

import numpy as np

from idm_nb.datasets import feature_example
from idm_nb.idm import ReebGraph


def rot(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def torus(n, rng):
    X, y, _ = feature_example("torus x", n, random_state=int(rng.integers(1e6)))
    return X, X[:, 0]


def saddle(n, rng):
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] * X[:, 1]


def y_tree(n, rng, rare=None, arms=2, d=20, noise=0.05):
    h = rng.uniform(0, 3, n)
    p = np.full(arms, 1 / arms) if rare is None else np.array([1 - rare, rare])
    arm = rng.choice(arms, n, p=p)
    E = np.eye(d)
    up = np.maximum(h - 1, 0)[:, None] * E[1 : arms + 1][arm]
    X = np.c_[h[:, None], np.zeros((n, d - 1))] + up + noise * rng.normal(size=(n, d))
    return X @ rot(d), h


def arm(n, rng, rare):
    # an arm with one row in 1/rare of all rows, leaving a trunk at 1 of 3
    h = rng.uniform(0, 3, n)
    a = rng.uniform(size=n) < rare
    h[a] = rng.uniform(1, 3, a.sum())
    X = np.c_[h, 0 * h, 0 * h]
    X[a, 1] = h[a] - 1
    return X + 0.03 * rng.normal(size=X.shape), h


def theta(n, rng):
    t, k = rng.uniform(0, np.pi, n), rng.integers(0, 3, n)
    E = np.eye(5)[1:4] - np.eye(5)[1:4].mean(0)
    X = -np.cos(t)[:, None] * np.eye(5)[0] + np.sin(t)[:, None] * E[k]
    return X + 0.02 * rng.normal(size=X.shape), -np.cos(t)


def sheets(n, rng, gap):
    X = np.c_[rng.uniform(size=(n, 2)), np.zeros(n)]
    X[:, 2] = rng.integers(0, 2, n) * gap * np.sqrt(2 / n)
    return X, X[:, 0]


def ring(n, rng):
    a = rng.uniform(0, 2 * np.pi, n)
    X = np.c_[np.cos(a), np.sin(a)] + 0.02 * rng.normal(size=(n, 2))
    return X, X[:, 0]


def cos2(n, rng):
    a, r = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(1, 9, n))
    return np.c_[r * np.cos(a), r * np.sin(a)], np.cos(2 * a)


def legs(n, rng):
    h = rng.uniform(size=n)
    k = rng.integers(0, 4, n)
    a = rng.uniform(0, 2 * np.pi, n)
    w = (2.2 * (1 - h) + np.exp(1j * a)) ** 0.25 * np.exp(1j * np.pi / 2 * k)
    return np.c_[w.real, w.imag, 3 * h], 3 * h


def holes(n, rng):
    X = rng.uniform([-2.5, -1], [2.5, 1], (3 * n, 2))
    ok = np.all([np.hypot(X[:, 0] - a, X[:, 1]) > 0.5 for a in (-1.2, 1.2)], axis=0)
    X = X[ok][:n]
    return X, X[:, 0]


def pulled(points, height, slope, rounds=20):
    for _ in range(rounds):
        g = slope(points)
        points = points - (height(points) / np.maximum((g**2).sum(axis=1), 1e-12))[:, None] * g
    return points


def double_torus(n, rng):
    outline = lambda p: p[:, 0] * (p[:, 0] - 1) ** 2 * (p[:, 0] - 2) + p[:, 1] ** 2
    height = lambda p: outline(p) ** 2 + p[:, 2] ** 2 - 0.02

    def slope(p):
        x, y, z = p.T
        along = (x - 1) ** 2 * (x - 2) + 2 * x * (x - 1) * (x - 2) + x * (x - 1) ** 2
        return np.c_[2 * outline(p) * along, 4 * outline(p) * y, 2 * z]

    box = rng.uniform([-0.15, -0.7, -0.25], [2.15, 0.7, 0.25], (60 * n, 3))
    thin = np.abs(height(box)) < 0.012 * np.linalg.norm(slope(box), axis=1)
    X = pulled(box[thin][:n], height, slope)
    return X, X[:, 0]


def roll(n, rng):
    t = np.sqrt(rng.uniform((1.5 * np.pi) ** 2, (4.2 * np.pi) ** 2, n))
    X = np.c_[t * np.cos(t), rng.uniform(0, 12, n), t * np.sin(t)]
    return X, X[:, 0]


def s3(n, rng):
    X = rng.normal(size=(n, 4))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, X[:, 0]


def binary(n, rng):
    # trunk, two arms, each with two arms, in R^10
    h = rng.uniform(0, 3, n)
    E = np.eye(10)
    b, c = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X = (
        h[:, None] * E[0]
        + np.maximum(h - 1, 0)[:, None] * E[1 + b]
        + np.maximum(h - 2, 0)[:, None] * E[3 + 2 * b + c]
    )
    return X + 0.03 * rng.normal(size=X.shape), h


def thick(n, rng):
    X, y = torus(3 * n, rng)
    keep = rng.uniform(size=3 * n) < np.where(X[:, 0] < -1, 1, 0.3)
    X = X[keep][:n]
    a = rng.uniform(0, 2 * np.pi, len(X))
    return np.c_[X, 0.3 * np.cos(a), 0.3 * np.sin(a)], X[:, 0]


def crossing(n, rng):
    # two lines that cross
    h, side = rng.uniform(0, 3, n), rng.choice([-1, 1], n)
    return np.c_[h, side * (h - 1.5), 0 * h] + 0.03 * rng.normal(size=(n, 3)), h


def lollipop(n, rng):
    # a ring on a stick
    a, on_stick = rng.uniform(0, 2 * np.pi, n), rng.uniform(size=n) < 0.25
    X = np.where(on_stick[:, None], np.c_[rng.uniform(1, 3, n), 0 * a], np.c_[np.cos(a), np.sin(a)])
    return X + 0.02 * rng.normal(size=(n, 2)), X[:, 0]


def eight(n, rng):
    # two rings that touch
    a, side = rng.uniform(0, 2 * np.pi, n), rng.choice([-1, 1], n)
    X = np.c_[np.cos(a) + side, np.sin(a), 0 * a]
    return X + 0.02 * rng.normal(size=X.shape), X[:, 0]


def side_arm(n, rng):
    # an arm with one row in five that leaves the trunk at 1 of 3 and ends at 2.2
    h, aside = rng.uniform(0, 3, n), rng.uniform(size=n) < 0.2
    h[aside] = rng.uniform(1, 2.2, aside.sum())
    X = np.c_[h, np.where(aside, h - 1, 0), 0 * h, 0 * h]
    return X + 0.03 * rng.normal(size=X.shape), h


def hills(n, rng):
    # land with two summits
    u = rng.uniform(-3, 3, (8 * n, 2))
    z = sum(
        a * np.exp(-((u - c) ** 2).sum(axis=1) / 0.72) for a, c in ((2, (-1, 0)), (1.6, (1, 0.1)))
    )
    rows = np.flatnonzero(z > 0.5)[:n]
    return np.c_[u, z][rows], z[rows]


def thick_y(n, rng):
    # a trunk and two arms that are balls of dimension 4 across
    h, side = rng.uniform(0, 3, n), rng.choice([-1, 1], n)
    ball = rng.normal(size=(n, 4))
    ball *= (rng.uniform(size=n) ** 0.25 / np.linalg.norm(ball, axis=1))[:, None]
    return np.c_[h, ball[:, 0] + side * 2 * np.maximum(h - 1, 0), ball[:, 1:]], h


def three_sheets(n, rng):
    X = np.c_[rng.uniform(size=(n, 2)), np.zeros(n)]
    X[:, 2] = rng.integers(0, 3, n) * 5 * np.sqrt(3 / n)
    return X, X[:, 0]


def three_loops(n, rng):
    # three rings in a row, with sticks between them and at both ends
    ring_at, stick_at = np.array([0.0, 3.5, 7.0]), np.array([-2.5, 1.0, 4.5, 8.0])
    on_stick, which = rng.uniform(size=n) < 6 / (6 + 6 * np.pi), rng.integers(0, 12, n)
    a, along = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 1.5, n)
    x = np.where(on_stick, stick_at[which % 4] + along, ring_at[which % 3] + np.cos(a))
    X = np.c_[x, np.where(on_stick, 0, np.sin(a)), 0 * a]
    return X + 0.03 * rng.normal(size=X.shape), X[:, 0]


def seven_leaves(n, rng):
    # a trunk that forks at 0.7, 1.4, ... 4.2, each time with an arm of length 1.4
    where, h = rng.uniform(0, 4.9 + 6 * 1.4, n), None
    arm = np.floor((where - 4.9) / 1.4).astype(int)
    off = np.where(arm < 0, 0, where - 4.9 - 1.4 * arm)
    h = np.where(arm < 0, where, 0.7 * (arm + 1) + off)
    X = h[:, None] * np.eye(7)[0] + off[:, None] * np.eye(7)[np.maximum(arm, 0) + 1 - (arm < 0)]
    return X + 0.03 * rng.normal(size=X.shape), h


def handles(n, rng):
    # a sphere with three handles: the surface of three tubes around rings that touch
    m, radius = 8 * n, 0.35
    turn, across, which = *rng.uniform(0, 2 * np.pi, (2, m)), rng.integers(0, 3, m)
    keep = rng.uniform(size=m) < (1 + radius * np.cos(across)) / (1 + radius)
    out = 1 + radius * np.cos(across)
    X = np.c_[2 * which + out * np.cos(turn), out * np.sin(turn), radius * np.sin(across)]
    for c in range(3):  # rows inside of another tube are not on the surface
        off = np.hypot(np.hypot(X[:, 0] - 2 * c, X[:, 1]) - 1, X[:, 2])
        keep &= (which == c) | (off > radius)
    X = X[keep][:n]
    return X, X[:, 0]


MANY = {
    "three loops": (three_loops, 1000, (1, 10, 3, 2)),
    "seven leaves": (seven_leaves, 1000, (1, 13, 0, 8)),
    "three handles": (handles, 1000, (1, 10, 3, 2)),
}

NEW = {
    "crossing": (crossing, 1000, (1, 4, 0, 4)),
    "lollipop": (lollipop, 1000, (1, 3, 1, 1)),
    "eight": (eight, 1000, (1, 4, 2, 0)),
    "side arm": (side_arm, 1000, (1, 3, 0, 3)),
    "two hills": (hills, 1000, (1, 3, 0, 3)),
    "thick Y": (thick_y, 2000, (1, 3, 0, 3)),
    "three sheets": (three_sheets, 1500, (3, 3, 0, 6)),
}

SHAPES = {
    "torus": (torus, 1000, (1, 4, 1, 2)),
    "saddle": (saddle, 1000, (1, 4, 0, 4)),
    "Y tree R20": (y_tree, 1000, (1, 3, 0, 3)),
    "theta R5": (theta, 1000, (1, 3, 2, 0)),
    "arm 1:10": (lambda n, r: arm(n, r, 0.1), 1000, (1, 3, 0, 3)),
    "arm 1:30 3000": (lambda n, r: arm(n, r, 1 / 30), 3000, (1, 3, 0, 3)),
    "6 spacings": (lambda n, r: sheets(n, r, 6), 1000, (2, 2, 0, 4)),
    "3 spacings": (lambda n, r: sheets(n, r, 3), 1000, (2, 2, 0, 4)),
    "ring": (ring, 1000, (1, 2, 1, 0)),
    "cos 2 theta": (cos2, 1000, (1, 4, 1, 0)),
    "four legs": (legs, 1000, (1, 5, 0, 5)),
    "two holes 1000": (holes, 1000, (1, 7, 2, 2)),
    "two holes 3000": (holes, 3000, (1, 7, 2, 2)),
    "double torus 3000": (double_torus, 3000, (1, 7, 2, 2)),
    "Swiss roll 3000": (roll, 3000, (1, 4, 0, 2)),
    "S3": (s3, 1000, (1, 1, 0, 2)),
    "binary R10": (binary, 1000, (1, 7, 0, 5)),
    "thick torus": (thick, 1000, (1, 4, 1, 2)),
}


def blob(d):
    def f(n, rng):
        X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, d)
        return X, X[:, 0]

    return f


def cube(d):
    def f(n, rng):
        X = rng.uniform(size=(n, d))
        return X, X @ np.ones(d)

    return f


def t2(d):
    def f(n, rng):
        X = rng.standard_t(2, size=(n, d))
        return X, X[:, 0] + 0.1 * rng.normal(size=n)

    return f


def sheet(d):
    def f(n, rng):
        u = rng.uniform(-1, 1, (n, 2))
        X = np.c_[u, (u**2).sum(1), np.zeros((n, max(d - 3, 0)))]
        X = X + 0.1 * rng.normal(size=X.shape)
        return X, u[:, 0]

    return f


def uneven(d):
    def f(n, rng):
        X = rng.uniform(size=(n, d)) ** 3
        return X, X[:, 0]

    return f


def clusters(d):
    def f(n, rng):
        c = rng.integers(0, 3, n)
        X = rng.normal(size=(n, d))
        X[:, 1] += 12 * c
        return X, X[:, 0]

    return f


def onehot(d):
    def f(n, rng):
        X = rng.normal(size=(n, d))
        X = np.round(X, 1)
        c = rng.integers(0, 3, n)
        H = np.eye(3)[c] * 3
        z = np.where(rng.uniform(size=n) < 0.4, 0, rng.gamma(2, size=n))
        return np.c_[X, H, z], X[:, 0] + 0.3 * z

    return f


def shuffled(d):
    def f(n, rng):
        X, y = torus(n, rng)
        return X, rng.permutation(y)

    return f


def strip(d):
    # rows of a noisy segment whose feature is one of the directions of the noise
    def f(n, rng):
        noise = 0.02 * rng.normal(size=(n, d + 1))
        return np.c_[rng.uniform(size=n) + noise[:, 0], noise[:, 1:]], noise[:, 1]

    return f


NULLS = {
    "blobs": blob,
    "cubes": cube,
    "t2": t2,
    "sheets": sheet,
    "uneven": uneven,
    "clusters": clusters,
    "one-hot": onehot,
    "shuffled": shuffled,
    "strips": strip,
}


def with_groups(group, X, far, rng, effect=1.0):
    "Rows whose groups lie `far` apart, and a feature that depends on the group as well."
    X = np.c_[X, far * np.eye(group.max() + 1)[group] / np.sqrt(2)]
    return X, X[:, 0] + effect * rng.normal(size=group.max() + 1)[group]


def four_clusters(n, rng):
    return with_groups(rng.integers(0, 4, n), rng.normal(size=(n, 5)), 12, rng)


def two_words(n, rng):
    first, second = rng.integers(0, 2, (2, n))
    X = np.c_[rng.normal(size=(n, 3)), 3 * np.eye(2)[first], 3 * np.eye(2)[second]]
    return X, X[:, 0] + 1.5 * first - 0.7 * second


def rounded(n, rng):
    return with_groups(rng.integers(0, 3, n), np.round(rng.normal(size=(n, 2)), 1), 5, rng)


def subjects(n, rng):
    return with_groups(rng.integers(0, 8, n), rng.normal(size=(n, 10)), 20, rng)


def uneven_clusters(n, rng):
    group = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    return with_groups(group, rng.normal(size=(n, 5)), 12, rng)


def soft_clusters(n, rng):
    group, X = rng.integers(0, 2, n), rng.normal(size=(n, 5))
    X[:, 1] += 2.5 * group
    return X, X[:, 0] + group


TABLES = {  # and the pieces into which the rows fall whatever the feature is
    "four clusters": (four_clusters, 4),
    "two words": (two_words, 4),
    "rounded": (rounded, 3),
    "subjects": (subjects, 8),
    "uneven clusters": (uneven_clusters, 3),
    "soft clusters": (soft_clusters, 1),
}


def counts(X, y):
    graph = ReebGraph(X, y)
    return graph.n_pieces, len(graph.branches), graph.n_loops, graph.n_ends


def shapes(draws, which=SHAPES, rows=None):
    for name, (make, n, want) in which.items():
        start = time.process_time()
        found = [counts(*make(rows or n, np.random.default_rng(seed))) for seed in range(draws)]
        seconds = (time.process_time() - start) / draws
        others = collections.Counter(c for c in found if c != want).most_common(3)
        print(
            f"{name:18} {found.count(want):2}/{draws} of {want}, {seconds:.2f} s, others {others}"
        )


def sizes(draws):
    for n in 300, 3000:
        print(f"with {n} rows")
        shapes(draws, SHAPES | NEW | MANY, n)


def nulls(draws):
    for name, make in NULLS.items():
        for d in (2, 5, 10):
            found = [counts(*make(d)(1000, np.random.default_rng(s))) for s in range(draws)]
            forks = sum(branches > pieces for pieces, branches, _, _ in found)
            print(f"{name:10} d = {d:2}: forks in {forks}/{draws}")


def tables(draws):
    for name, (make, pieces) in TABLES.items():
        found = [counts(*make(1000, np.random.default_rng(s))) for s in range(draws)]
        forks = sum(branches > pieces for pieces, branches, _, _ in found)
        right = sum(f[0] == pieces for f in found)
        print(f"{name:16} forks in {forks}/{draws}, {pieces} pieces in {right}/{draws}")


if __name__ == "__main__":
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    what = sys.argv[2] if len(sys.argv) > 2 else "shapes"
    RUNS = {
        "shapes": shapes,
        "new": lambda draws: shapes(draws, NEW),
        "many": lambda draws: shapes(draws, MANY),
        "nulls": nulls,
        "tables": tables,
        "sizes": sizes,
    }
    RUNS[what](draws)
