"""Inputs that people have, and inputs that go wrong: name, how it is made, and what must happen."""

import datetime

import numpy as np
import scipy.sparse as sp

from idm_nb import (
    ConformalMap,
    DiffeomorphismMap,
    DiffusionFlow,
    DiffusionMap,
    FeatureRegressor,
    IteratedDiffusionMap,
    NonlinearICA,
)

N = 60


def cloud(n=N, m=3, seed=0):
    "Rows `(n, m)` and a feature `(n,)` that bends."
    X = np.random.default_rng(seed).normal(size=(n, m))
    return X, X[:, 0] + X[:, m > 1 and 1] ** 2


def changed(array, **places):
    "A copy of the feature or the rows with a value somewhere."
    array = array.copy()
    for place, value in places.items():
        array[tuple(map(int, place[1:].split("_")))] = value
    return array


# all that learn from rows; each is made anew for every case
ESTIMATORS = {
    "DiffusionMap": lambda: DiffusionMap(random_state=0),
    "ConformalMap": lambda: ConformalMap(random_state=0),
    "NonlinearICA": lambda: NonlinearICA(1, random_state=0),
    "DiffeomorphismMap": lambda: DiffeomorphismMap(6, random_state=0),
    "IteratedDiffusionMap": lambda: IteratedDiffusionMap(regressor="ridge", random_state=0),
    "IteratedDiffusionMap, kernel": lambda: IteratedDiffusionMap(
        2, regressor="kernel", random_state=0
    ),
    "IteratedDiffusionMap, paper": lambda: IteratedDiffusionMap(
        2, regressor="ridge", flow=DiffusionFlow(), random_state=0
    ),
    "FeatureRegressor": lambda: FeatureRegressor(["ridge"], random_state=0),
}
SUPERVISED = [name for name in ESTIMATORS if name.startswith(("Diffeo", "Iter", "Feature"))]
GROUPED = [name for name in ESTIMATORS if name.startswith(("Iter", "Feature"))]


def frame(X, names="abc", kind="pandas", **options):
    import pytest

    return pytest.importorskip(kind).DataFrame(dict(zip(names, np.asarray(X).T)), **options)


def series(y, kind="pandas"):
    import pytest

    return pytest.importorskip(kind).Series(y)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def spread_out(X):
    "The same rows as a view with gaps between the entries."
    wide = np.zeros((2 * len(X), 2 * X.shape[1]))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def circle(n=N):
    angle = 2 * np.pi * np.arange(n) / n
    return np.c_[np.cos(angle), np.sin(angle)], np.sin(angle)


def grid(side=8):
    X = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2)
    return X / 1.0, X[:, 0] / 1.0


def labelled(labels):
    "The cloud with groups."
    return lambda: (*cloud(), labels)


X, Y = cloud()
COPIES = np.r_[np.arange(N), np.arange(N // 2)]
ONCE_MORE = np.r_[np.arange(N), np.zeros(30, dtype=int)]
FEW = np.repeat(np.arange(6), 10)

# how the same numbers may come
ROWS = {
    "float32": lambda X: X.astype(np.float32),
    "long doubles": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "with gaps": spread_out,
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "masked": np.ma.MaskedArray,
    "pandas": lambda X: frame(X, names="abcd"),
    "polars": lambda X: frame(X, names="abcd", kind="polars"),
}
FORMS = {
    **{name: lambda form=form: (form(X), Y) for name, form in ROWS.items()},
    "plain": lambda: (X, Y),
    "float16": lambda: (X.astype(np.float16), Y),
    "features in other forms": lambda: (X, read_only(spread_out(Y[:, None])[:, 0].astype(">f4"))),
    "backwards view": lambda: (X[::-1], Y[::-1]),
    "lists of both": lambda: (X.tolist(), Y.tolist()),
    "tuples": lambda: (tuple(map(tuple, X)), tuple(Y)),
    "objects that are numbers": lambda: (X.astype(object), Y.astype(object)),
    "matrix subclass": lambda: (X.view(type("Rows", (np.ndarray,), {})), Y),
    "pandas series": lambda: (frame(X), series(Y)),
    "pandas, own index": lambda: (frame(X).set_index(np.arange(N)[::-1]), series(Y)),
    "pandas, nullable": lambda: (frame(X).convert_dtypes(), series(Y)),
    "pandas, mixed numbers": lambda: (
        frame(X).assign(a=np.arange(N), b=X[:, 1] > 0, c=X[:, 2].astype(np.float32)),
        series(Y),
    ),
    "pandas, column numbers": lambda: (frame(X, names=range(3)), series(Y)),
    "polars series": lambda: (frame(X, kind="polars"), series(Y, kind="polars")),
    "feature as a column": lambda: (X, Y[:, None]),
    "feature as a frame": lambda: (X, frame(Y[:, None], names="y")),
    "two features": lambda: (X, np.c_[Y, X[:, 2]]),
    "whole feature": lambda: (X, np.arange(N)),
    "feature of two values": lambda: (X, (X[:, 0] > 0)),
}

# numbers that are not so plain
SHAPES = {
    "integers": lambda: (np.round(10 * X).astype(int), Y),
    "bytes": lambda: (np.round(10 * X).astype(np.int8), Y),
    "yes and no": lambda: (X > 0, Y),
    "moved by 1e4": lambda: (X + 1e4, Y),
    "moved by 1e8": lambda: (X + 1e8, Y),
    "moved, many columns": lambda: (cloud(N, 15)[0] + 1e8, cloud(N, 15)[1]),
    "times 1e-6": lambda: (1e-6 * X, Y),
    "times 1e6": lambda: (1e6 * X, Y),
    "times 1e-60": lambda: (1e-60 * X, Y),
    "times 1e60": lambda: (1e60 * X, Y),
    "columns of three sizes": lambda: (X * [1, 1e6, 1e-6], Y),
    "constant column": lambda: (np.c_[X, np.full(N, 7.0)], Y),
    "large constant column": lambda: (np.c_[X, np.full(N, 1e9)], Y),
    "column twice": lambda: (np.c_[X, X[:, :1]], Y),
    "negative zeros": lambda: (np.where(np.abs(X) < 0.3, -0.0, X), Y),
    "half of the rows twice": lambda: (X[COPIES], Y[COPIES]),
    "copies that differ in the feature": lambda: (X[COPIES], Y[COPIES] + 0.1 * np.arange(90)),
    "every row three times": lambda: (np.repeat(X, 3, axis=0), np.repeat(Y, 3)),
    "one row thirty times": lambda: (X[ONCE_MORE], Y[ONCE_MORE]),
    "six rows ten times": lambda: (X[FEW], Y[FEW]),
    "copies up to rounding": lambda: (np.vstack([X, X * (1 + 1e-15)]), np.r_[Y, Y]),
    "an outlier": lambda: (changed(X, r3_0=1e3), Y),
    "a far outlier": lambda: (changed(X, r3_0=1e7), Y),
    "two outliers": lambda: (changed(X, r3_0=1e4, r9_1=-1e4), Y),
    "grid": grid,
    "circle": circle,
    "a line in space": lambda: (np.outer(X[:, 0], [1.0, 2, 3]), Y),
    "one column": lambda: (X[:, :1], Y),
    "one column of integers": lambda: (np.round(3 * X[:, :1]), Y),
    "two far pieces": lambda: (np.vstack([X[:30], X[30:] + 100]), Y),
    "sorted": lambda: (np.sort(X, axis=0), np.sort(Y)),
    "more columns than rows": lambda: cloud(20, 50),
    "many columns": lambda: cloud(40, 300),
    "four rows": lambda: cloud(4),
    "five rows": lambda: cloud(5),
    "eight rows": lambda: cloud(8),
    "heavy tails": lambda: (np.random.default_rng(1).standard_cauchy((N, 3)), Y),
    "feature moved by 1e8": lambda: (X, Y + 1e8),
    "feature times 1e-8": lambda: (X, 1e-8 * Y),
    "feature times 1e12": lambda: (X, 1e12 * Y),
    "feature with an outlier": lambda: (X, changed(Y, r3=1e6)),
    "feature of noise": lambda: (X, np.random.default_rng(5).normal(size=N)),
    "feature that is a column": lambda: (X, X[:, 0]),
    "feature of ties": lambda: (X, np.round(Y)),
    "feature of one row": lambda: (X, 1.0 * (np.arange(N) == 5)),
    "many features": lambda: (X, cloud(N, 12, 3)[0]),
}

GROUPS = {
    "groups of five": labelled(np.arange(N) // 5),
    "names as groups": labelled(np.array(["ann", "bob", "eve"])[np.arange(N) % 3]),
    "list of groups": labelled([f"p{i % 7}" for i in range(N)]),
    "groups of all sizes": labelled(np.minimum(np.arange(N) // 2, 10)),
    "two groups": labelled(np.arange(N) % 2),
    "column of groups": labelled((np.arange(N) // 5)[:, None]),
    "numbers and names": labelled(np.array([1, "a"] * (N // 2), dtype=object)),
    "a group for each row": labelled(np.arange(N)),
    "copies in different groups": lambda: (X[COPIES], Y[COPIES], np.arange(len(COPIES)) // 5),
}

GOOD = {**FORMS, **SHAPES, **GROUPS}

ROOM = np.where(np.arange(N)[:, None] == 17, np.nan, X)
# rows that cannot be used: how they are made, and words that the message must hold
BAD_ROWS = {
    "NaN": (lambda: ROOM, "X contains NaN at row 17, column 0", "remove those rows"),
    "infinity": (
        lambda: changed(X, r17_1=np.inf),
        "X contains inf at row 17, column 1",
        "fill the gaps",
    ),
    "minus infinity": (lambda: changed(X, r17_1=-np.inf), "X contains inf at row 17, column 1"),
    "beyond float32": (lambda: changed(X.astype("f4"), r2_1=np.inf), "X contains inf at row 2"),
    "squares beyond all numbers": (
        lambda: 1e160 * X,
        "X contains 1.26e\\+159 at row 0",
        "divide the column by a unit",
    ),
    "one number too large": (
        lambda: changed(X, r17_1=1e200),
        "X contains 1e\\+200 at row 17, column 1",
    ),
    "all rows the same": (lambda: np.ones((N, 3)), "all 60 rows of X are the same point"),
    "no rows": (lambda: X[:0], "0 sample"),
    "one row": (lambda: X[:1], "1 sample|minimum of"),
    "no columns": (lambda: X[:, :0], "0 feature"),
    "one dimension": (lambda: X[:, 0], "Expected 2D array, got 1D array", "[Rr]eshape"),
    "three dimensions": (lambda: X[:, :, None], "dim 3|3 dim|3D"),
    "a number": (lambda: 3.0, "2D array, got scalar"),
    "None": (lambda: None, "X|array|data"),
    "text": (lambda: "rows", "X|array|data"),
    "a dict": (lambda: {"a": 1}, "X|array|data|number"),
    "ragged lists": (lambda: [[1, 2], [3], [4, 5]] * 9, "inhomogeneous|sequence"),
    "words": (
        lambda: np.array([["a", "b"]] * N),
        "could not convert string to float: .*'a'|number",
    ),
    "complex": (lambda: X + 1j, "[Cc]omplex"),
    "dates": (lambda: np.full((N, 2), np.datetime64("2024-01-01")), "X .*dates|number"),
    "durations": (lambda: np.full((N, 2), np.timedelta64(1, "s")), "X .*durations|number"),
    "sparse": (lambda: sp.csr_matrix(X), "[Ss]parse", "toarray"),
    "None among numbers": (lambda: changed(X.astype(object), r4_1=None), "X contains NaN at row 4"),
    "masked": (lambda: np.ma.masked_less(X, -2), "X contains NaN at row"),
    "frame with text": (
        lambda: frame(X).assign(name="x"),
        "X has columns .*no numbers: 'name'.*TableMap.*encode",
    ),
    "frame with categories": (
        lambda: frame(X).assign(kind=series(["u", "v"] * 30).astype("category")),
        "X has columns .*no numbers: 'kind'.*TableMap",
    ),
    "frame with dates": (
        lambda: frame(X).assign(day=datetime.datetime(2024, 1, 1)),
        "X has columns .*no numbers: 'day'.*TableMap",
    ),
    "frame with gaps": (lambda: frame(ROOM), "X contains NaN at row 17, column 0 \\('a'\\)"),
    "nullable frame with gaps": (
        lambda: frame(ROOM).convert_dtypes(),
        "X contains NaN at row 17, column 0",
    ),
    "polars with text": (
        lambda: frame(X, kind="polars").with_columns(name=series(["x"] * N, "polars")),
        "X has columns .*no numbers: 'name'.*TableMap",
    ),
    "polars with gaps": (
        lambda: frame(ROOM, kind="polars").fill_nan(None),
        "X contains NaN at row 17",
    ),
}

BAD_FEATURES = {
    "None": (lambda: None, "requires y"),
    "NaN": (lambda: changed(Y, r17=np.nan), "y contains NaN at row 17"),
    "infinity": (lambda: changed(Y, r17=np.inf), "y contains inf at row 17"),
    "too large": (lambda: changed(Y, r17=1e200), "y contains 1e\\+200 at row 17"),
    "too short": (lambda: Y[:-1], "y has 59 rows but X has 60"),
    "too long": (lambda: np.r_[Y, 1], "y has 61 rows but X has 60"),
    "constant": (lambda: np.full(N, 4.0), "y is constant in column 0"),
    "second column constant": (lambda: np.c_[Y, np.ones(N)], "y is constant in column 1"),
    "words": (lambda: np.array(["a", "b"] * 30), "could not convert string|y .*number"),
    "frame of words": (lambda: frame([["a", "b"] * 30], "y"), "y has columns .*no numbers: 'y'"),
    "series of words": (lambda: series(["a", "b"] * 30), "could not convert|y .*number"),
    "complex": (lambda: Y + 1j, "[Cc]omplex"),
    "three dimensions": (lambda: Y[:, None, None], "3|dim"),
    "a number": (lambda: 3.0, "y"),
    "no columns": (lambda: np.empty((N, 0)), "y|0 feature"),
    "sparse column": (lambda: sp.csr_matrix(Y[:, None]), "[Ss]parse"),
    "masked": (lambda: np.ma.masked_greater(Y, 1.0), "y contains NaN"),
    "None among numbers": (lambda: changed(Y.astype(object), r4=None), "y contains NaN at row 4"),
    "dates": (lambda: np.datetime64("2024-01-01") + np.arange(N), "y .*dates|number"),
}

BAD_GROUPS = {
    "too short": (lambda: np.arange(10), "groups must hold one label for each of the 60 rows"),
    "a number": (lambda: 3, "groups must hold one label"),
    "two columns": (lambda: np.ones((N, 2)), "groups must hold one label"),
    "one label": (lambda: np.zeros(N), "groups has one label for all rows"),
    "one name": (lambda: ["a"] * N, "groups has one label for all rows"),
    "NaN": (lambda: np.r_[np.nan, np.arange(N - 1)], "groups contains NaN|groups .*missing"),
    "None among names": (lambda: np.array([None] + ["a", "b", "c"] * 20)[:N], "groups .*missing"),
}

# new rows for a map fitted to three columns
BAD_NEW = {
    "NaN": (lambda: ROOM, "X contains NaN at row 17, column 0"),
    "infinity": (lambda: changed(X, r17_1=np.inf), "X contains inf at row 17, column 1"),
    "too large": (lambda: changed(X, r17_1=1e200), "X contains 1e\\+200 at row 17, column 1"),
    "a column more": (lambda: np.c_[X, X], "X has 6 features, but .* is expecting 3"),
    "a column less": (lambda: X[:, :2], "X has 2 features, but .* is expecting 3"),
    "one row without brackets": (lambda: X[0], "Expected 2D array, got 1D array"),
    "no rows": (lambda: X[:0], "0 sample"),
    "words": (lambda: np.array([["a", "b", "c"]]), "could not convert|number"),
    "complex": (lambda: X + 1j, "[Cc]omplex"),
    "None": (lambda: None, "X|array|data"),
    "sparse": (lambda: sp.csr_matrix(X), "[Ss]parse"),
}


def named(given):
    "The groups of an attack, if it has any, by name."
    return dict(groups=given[2]) if len(given) > 2 else {}


# values that are right for hardly any parameter, and parameters for which they are
NO_VALUES = {
    "None": None,
    "a word": "nonsense",
    "-1": -1,
    "NaN": np.nan,
    "inf": np.inf,
    "an empty list": [],
    "an array": np.arange(3.0),
    "an object": object(),
}
ALLOWED = {
    ("n_jobs", "None"),
    ("n_jobs", "-1"),
    ("n_components", "None"),
    ("random_state", "None"),
    ("rank", "None"),
    ("flow", "None"),
    ("log_odds", "inf"),
    ("landmarks", "None"),
}
