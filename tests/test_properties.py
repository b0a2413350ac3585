"""What has to hold for all data: nothing depends on the origin, the unit, the axes, the order or the form of the table."""

import csv
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from attacks import ESTIMATORS, ROWS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_promises import embedding, told
from test_second_fits import same

import idm_nb
from idm_nb.core import Storage
from idm_nb.core.rows import RowLookup, distinct_rows, mean_of_copies
from idm_nb.tables import read_table
from idm_nb.tables.cells import Style, is_number
from idm_nb.tables.pieces import write_table
from idm_nb.tables.reading import tables_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CHEAP = [kind for kind in ESTIMATORS if not kind.endswith(("kernel", "paper"))]
SPECTRAL = ["DiffusionMap", "ConformalMap", "NonlinearICA"]


def examples(n):
    "The same `n` examples in every run."
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(
        max_examples=n, derandomize=True, deadline=None, database=None, suppress_health_check=quiet
    )


@st.composite
def clouds(draw, fewest=12, most=36):
    "Rows `(n, m)` without ties, the feature `(n,)` of each, and a generator for more."
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(fewest, most)), draw(st.integers(2, 4))
    X = draw(st.sampled_from([rng.normal, rng.uniform, rng.exponential]))(size=(n, m))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=n), rng


@st.composite
def tied(draw):
    "Rows of few values, so that many are equal, and the feature of each."
    X, y, rng = draw(clouds(24))
    X = np.round(draw(st.sampled_from([1.0, 2.0, 8.0])) * X)
    return X + (np.ptp(X) == 0) * np.arange(len(X))[:, None], y


def turned(X, rng):
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]


# name: rows -> rows that show the same thing, and the number by which lengths have grown
SAME = {
    "moved": lambda X, rng: (
        X + np.ptp(X) * 10 ** rng.uniform(0, 8) * rng.normal(size=X.shape[1]),
        1.0,
    ),
    "scaled": lambda X, rng: (X * (size := 10 ** rng.uniform(-6, 6)), size),
    "turned": lambda X, rng: (turned(X, rng), 1.0),
    "columns in another order": lambda X, rng: (X[:, rng.permutation(X.shape[1])], 1.0),
    "column twice, halved": lambda X, rng: (np.c_[X[:, 1:], X[:, :1] * [0.6, 0.8]], 1.0),
}


@pytest.mark.parametrize("kind", SPECTRAL)
@examples(8)
@given(clouds(20))
def test_spectra_do_not_depend_on_origin_unit_and_axes(kind, cloud):
    X, _, rng = cloud
    options = dict(keep_self=False, **({"rank": 2} if kind == "NonlinearICA" else {}))
    rates = lambda X: ESTIMATORS[kind]().set_params(**options).fit(X).laplacian_eigenvalues_[1:5]
    first = rates(X)
    for change in SAME:
        again, size = SAME[change](X, rng)
        size = 1.0 if kind == "ConformalMap" else size  # it has total volume one
        assert np.allclose(first, size**2 * rates(again), rtol=2e-3), change  # a histogram has bins


@pytest.mark.parametrize("kind", SPECTRAL)
@examples(24)
@given(clouds())
def test_spectra_do_not_depend_on_the_order_of_rows(kind, cloud):
    X, _, rng = cloud
    order = rng.permutation(len(X))
    first, second = ESTIMATORS[kind]().fit(X), ESTIMATORS[kind]().fit(X[order])
    assert np.allclose(
        first.laplacian_eigenvalues_[:5], second.laplacian_eigenvalues_[:5], rtol=1e-6
    )
    assert np.allclose(first.density_[order], second.density_, rtol=1e-6)


@pytest.mark.parametrize("kind", ["FeatureRegressor", "IteratedDiffusionMap"])
@examples(16)
@given(clouds())
def test_predictions_and_neighbours_do_not_depend_on_origin_unit_and_axes(kind, cloud):
    X, y, rng = cloud
    fit = lambda rows: ESTIMATORS[kind]().fit(rows[:-4], y[:-4])
    first, tolerance = fit(X), 1e-5 * np.ptp(y)
    for change in SAME:
        again, _ = SAME[change](X, rng)
        second, new = fit(again), again[-4:]
        # rounding, worse by the condition of the kernel matrix
        assert np.allclose(first.predict(X[-4:]), second.predict(new), atol=tolerance), change
        if kind == "IteratedDiffusionMap" and change != "scaled":
            near = first.kneighbors(X[-4:], 3)[0], second.kneighbors(new, 3)[0]
            # distances are differences of coordinates that agree to a few 1e-6
            assert np.allclose(*near, rtol=1e-4, atol=tolerance), change


@examples(40)
@given(clouds(), st.floats(-6, 6), st.floats(-1e6, 1e6))
def test_predictions_are_in_the_unit_of_the_feature(cloud, size, shift):
    X, y, _ = cloud
    first, second = (
        ESTIMATORS["FeatureRegressor"]().fit(X, values) for values in (y, 10**size * (y + shift))
    )
    assert np.allclose(
        10**size * (first.predict(X) + shift), second.predict(X), rtol=1e-6, atol=1e-6 * 10**size
    )


@pytest.mark.parametrize("kind", CHEAP)
@examples(25)
@given(tied())
def test_copies_are_in_one_place_and_training_rows_are_recalled(kind, table):
    X, y = table
    model = ESTIMATORS[kind]()
    if len(np.unique(X, axis=0)) < 4:
        return
    model.fit(X, y)
    found = told(model, X)
    assert np.isfinite(found).all()
    first, inverse, _ = distinct_rows(X)
    assert np.allclose(found, found[first][inverse], rtol=1e-12)
    if hasattr(model, "transform"):
        assert np.abs(found - embedding(model)).max() <= 1e-8 * np.abs(found).max()


@pytest.mark.parametrize("kind", CHEAP)
@examples(15)
@given(clouds())
def test_rows_alone_are_like_rows_among_others(kind, cloud):
    X, y, rng = cloud
    model = ESTIMATORS[kind]().fit(X[:-3], y[:-3])
    new = np.vstack([X[-3:], X[:2], X[-3:] + 0.1 * rng.normal(size=(3, X.shape[1]))])
    together = told(model, new)
    alone = np.concatenate([told(model, row[None]) for row in new])
    assert np.allclose(together, alone, rtol=1e-9, atol=1e-9 * np.abs(together).max())


@pytest.mark.parametrize("kind", ["DiffusionMap", "ConformalMap", "FeatureRegressor"])
@examples(40)
@given(clouds(), st.sampled_from([*ROWS]))
def test_the_form_of_the_table_does_not_matter(kind, cloud, form):
    X, y, _ = cloud
    X = X.astype(np.float32).astype(float)
    first, second = ESTIMATORS[kind]().fit(X, y), ESTIMATORS[kind]().fit(ROWS[form](X), y)
    if kind in SPECTRAL:
        assert np.allclose(
            first.laplacian_eigenvalues_, second.laplacian_eigenvalues_, rtol=1e-6, atol=1e-9
        )
    else:
        assert np.allclose(
            told(first, X), told(second, ROWS[form](X)), rtol=1e-9, atol=1e-9 * np.ptp(y)
        )


@pytest.mark.parametrize("kind", ["FeatureRegressor", "IteratedDiffusionMap"])
@examples(20)
@given(clouds(), st.integers(1, 4))
def test_several_features_have_the_shape_they_came_in(kind, cloud, n):
    X, y, rng = cloud
    features = np.stack([y, *rng.normal(size=(n - 1, len(y)))], axis=1)
    model = ESTIMATORS[kind]().fit(X, features)
    found, error = model.predict(X, return_std=True)
    assert found.shape == error.shape == features.shape
    assert np.isfinite(found).all() and (error > 0).all()


@pytest.mark.parametrize("kind", CHEAP)
@examples(12)
@given(clouds())
def test_saved_pickled_and_changed_afterwards(kind, cloud):
    X, y, rng = cloud
    given_X, given_y, new = X.copy(), y.copy(), X[:5] + 0.01
    model = ESTIMATORS[kind]().fit(given_X, given_y)
    found = told(model, new)
    given_X *= 10
    given_y[:] = 0
    assert np.array_equal(told(model, new), found)
    assert np.array_equal(told(pickle.loads(pickle.dumps(model)), new), found)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m.npz")
        assert np.array_equal(told(idm_nb.load(Path(folder) / "m.npz"), new), found)


NAMES = (
    st.text(min_size=1, max_size=12)
    .map(str.strip)
    .filter(
        lambda s: (
            s and not s.startswith("\ufeff") and "\x00" not in s and s.isprintable() | ("\n" in s)
        )
    )
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8)


@examples(250)
@given(st.lists(NAMES, min_size=2, max_size=4, unique=True), st.integers(1, 4), st.data())
def test_tables_are_read_as_they_were_written(names, n, data):
    if all(map(is_number, names)):
        names[0] = "a" + names[0]
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    columns = {name: data.draw(st.lists(numbers, min_size=n, max_size=n)) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "t.csv", columns)
        table = read_table(Path(folder) / "t.csv")
    assert table.names == names
    if np.abs(columns[names[0]]).max() < 1e100:  # pandas reads to the last bit
        assert np.allclose(table.numbers(names[:1])[:, 0], columns[names[0]], rtol=1e-15, atol=0)


KINDS = ".csv .csv.gz .tsv .parquet .feather .json .jsonl .npz .xlsx".split()
CELLS = st.none() | st.sampled_from(["ä", "a, b", 'say "x"', "two\n\nlines", "; |", "# 1"])


@pytest.mark.parametrize("kind", KINDS)
@examples(40)
@given(st.integers(1, 3), st.integers(1, 6), st.data())
def test_no_row_is_lost(kind, width, n, data):
    "Numbers and order of the rows are those of the file, also of rows without any entry."
    draw = lambda cells: data.draw(st.lists(cells, min_size=n, max_size=n))
    frame = pd.DataFrame({"a": draw(st.none() | st.sampled_from([1.5, -2.0]))}, dtype=float)
    frame = frame.assign(**{name: draw(CELLS) for name in "bc"[: width - 1]})
    frame.loc[data.draw(st.just(n - 1) if kind == ".xlsx" else st.integers(0, n - 1)), "a"] = 7
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{kind}"
        if kind == ".csv":
            write_badly(path, frame, data.draw)
        elif kind in (".json", ".jsonl"):
            frame.to_json(path, orient="records", lines=kind == ".jsonl")
        elif kind == ".xlsx":
            frame.to_excel(path, index=False)
        else:
            write_table(path, frame)
        for rows in (None, 2):
            found = pd.concat([t.frame for t in tables_of(path, Style(whole=True), rows)])
            assert found.index.tolist() == [*range(1, n + 1)]
            assert np.array_equal(found.a, frame.a, equal_nan=True)
        assert read_table(path).rows.tolist() == (frame.dropna(how="all").index + 1).tolist()


def write_badly(path, frame, draw):
    "A `frame` as a text file with a mark, ends of lines, quotes, blank lines and so on that are drawn."
    mark, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    more = [""] * draw(st.booleans())  # separators at the ends of lines
    code = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    with open(path, "w", encoding=code, newline="") as file:
        writer = csv.writer(file, delimiter=mark, quoting=quoting, lineterminator=end)
        for row in [frame.columns, *frame.astype(object).where(frame.notna(), "").to_numpy()]:
            writer.writerow([*row, *more])
            file.write(end * (frame.shape[1] > 1 and draw(st.booleans())))


@examples(100)
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_no_cell_begins_a_formula(words):
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "t.csv", {"=HYPERLINK(1)": words, "n": np.arange(len(words))})
        text = (Path(folder) / "t.csv").read_text(encoding="utf-8")
    for line in text.splitlines():
        assert (
            line.lstrip('"')[:1] not in ("=", "@")
            and not line.startswith(("+", "-"))
            or is_number(line.split(",")[0].strip('"'))
        )


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(st.text(max_size=3), parts, max_size=3)
        | st.tuples(parts, parts)
        | st.just(np.arange(6.0).reshape(2, 3))
    ),
    max_leaves=8,
)


class Kept(Storage):
    def __init__(self, tree):
        self.tree = tree


@examples(200)
@given(TREES)
def test_what_is_saved_is_loaded(tree):
    with tempfile.TemporaryDirectory() as folder:
        Kept(tree).save(Path(folder) / "t.npz")
        assert same(Kept.load(Path(folder) / "t.npz").tree, tree)


@examples(300)
@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 2), min_size=1, max_size=20))
def test_equal_rows_are_found(rows):
    X = np.array(rows, dtype=float) * [1, -0.0]
    first, inverse, counts = distinct_rows(X)
    assert np.array_equal(X[first][inverse], X) and counts.sum() == len(X)
    assert np.array_equal(first, RowLookup(X).find(X[first])) and np.all(np.diff(first) > 0)
    values = mean_of_copies(X, np.arange(2.0 * len(X)).reshape(-1, 2))
    assert np.allclose(values, values[first][inverse])
