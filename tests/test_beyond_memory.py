"""Long tables: landmarks stand for all rows, errors are honest, one thread, and dask places rows with the methods of a model."""

import numpy as np
import pytest
from sklearn.cluster import kmeans_plusplus
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

from idm_nb import IteratedDiffusionMap, TableMap
from idm_nb.command.command_line import main
from idm_nb.core.rows import pool_rows, spread_rows
from idm_nb.datasets import feature_example
from idm_nb.diffusion import recall_by_component


@pytest.fixture(scope="module")
def torus():
    "8000 rows of a torus with feature x and noise of a tenth of its spread."
    X, y, _ = feature_example("torus x", 8000, random_state=0)
    return X, y[:, 0], y[:, 0] + 0.1 * np.random.default_rng(1).normal(size=8000)


@pytest.fixture(scope="module")
def fitted(torus):
    X, _, y = torus
    model = IteratedDiffusionMap(landmarks=600, regressor="kernel", random_state=0)
    return model.fit(X[:6000], y[:6000])


def test_landmarks_tell_nearly_as_much_as_half_of_the_rows(torus, fitted):
    X, exact, y = torus
    model = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X[:3000], y[:3000])
    side, old = np.where(np.abs(exact) < 1, np.sign(X[:, 1]), 0), np.arange(3000, 6000)
    new = 6000 + np.flatnonzero(np.abs(exact[6000:]) < 0.8)
    r2, recall = [], []
    for each in (fitted, model):
        known, asked = ((exact[rows][:, None], side[rows]) for rows in (old, new))
        places = (each.transform(X[rows]) for rows in (old, new))
        recall.append(recall_by_component(next(places), *known, next(places), *asked, 50))
        r2.append(1 - np.mean((each.predict(X[6000:]) - exact[6000:]) ** 2) / exact.var())
    assert r2[0] > r2[1] - 0.01 and recall[0] > recall[1] - 0.1


def test_errors_hold_for_rows_that_were_never_landmarks(torus, fitted):
    X, _, y = torus
    values, errors = fitted.predict(X[6000:], return_std=True)
    covered = np.mean(np.abs(values - y[6000:]) < 1.96 * errors)
    # 95 % within the scatter of a quantile of 600 residuals, three standard deviations
    assert abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 * (1 / 600 + 1 / 2000))
    share = np.mean((values - y[6000:]) ** 2) / y[6000:].var()
    spread = np.std((values - y[6000:]) ** 2) / y[6000:].var() / np.sqrt(600)
    assert abs(1 - share - fitted.verdict_.r2) < 3 * np.sqrt(1.3) * spread


def test_dask_places_rows_with_the_methods_of_a_model(torus, fitted):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pd, X = pytest.importorskip("pandas"), torus[0][6000:7000]
    lazy = da.from_array(X, chunks=(300, 3))
    values = lazy.map_blocks(fitted.predict, drop_axis=1, dtype=float)
    places = lazy.map_blocks(fitted.transform, chunks=(lazy.chunks[0], (5,)), meta=X[:0])
    assert np.allclose(values.compute(scheduler="threads"), fitted.predict(X))
    assert np.allclose(places.compute(scheduler="threads"), fitted.transform(X))
    assert np.allclose(fitted.predict(lazy), fitted.predict(X))  # the whole table in memory
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    found = frame.map_partitions(fitted.predict, meta=np.empty(0))
    assert np.allclose(found.compute(scheduler="threads"), fitted.predict(X))


def test_landmarks_stand_for_all():
    X, y, _ = feature_example("annulus radius", 3000, random_state=0)
    fast = dict(regressor="kernel", random_state=0)
    model = IteratedDiffusionMap(landmarks=500, **fast)
    moved = model.fit_transform(X, y)
    assert len(moved) == 3000 and len(model.embedding_) == len(model.landmarks_) == 500
    assert np.allclose(moved[model.landmarks_], model.embedding_) and model.score(X, y) > 0.999
    same = IteratedDiffusionMap(landmarks=model.landmarks_, **fast).fit(X, y)
    assert same.landmarks_.tolist() == model.landmarks_.tolist()
    for landmarks in (5000, 2, 0.5, [0, 9999], [0.5, 1.5]):
        with pytest.raises((ValueError, TypeError), match="landmarks must be"):
            IteratedDiffusionMap(landmarks=landmarks).fit(X, y)
    weight, last = np.repeat([0.0, 1.0], 1500), np.arange(1400, 2000)  # rows of X, if they count
    model = IteratedDiffusionMap(landmarks=last, **fast).fit(X, y, sample_weight=weight)
    assert model.landmarks_.tolist() == last[100:].tolist()
    with pytest.raises(ValueError, match="rows that count, from 0 to 2999"):
        model.set_params(landmarks=last[:100]).fit(X, y, sample_weight=weight)


def blas_threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


class Counting(LinearRegression):
    "A regressor that notes how many threads linear algebra has while it is fitted."

    seen = []

    def fit(self, X, y):
        self.seen.append(blas_threads())
        return super().fit(X, y)


def test_a_fit_takes_one_thread_and_leaves_the_limit_as_it_was():
    X = np.random.default_rng(0).normal(size=(60, 5))
    with threadpool_limits(2):
        IteratedDiffusionMap(regressor=Counting(), random_state=0).fit(X, X[:, 0])
        assert blas_threads() == {2}
    assert Counting.seen and all(threads == {1} for threads in Counting.seen)


def test_the_command_fits_landmarks_of_a_pool_of_the_file(torus, tmp_path, monkeypatch):
    pd, (X, _, y) = pytest.importorskip("pandas"), torus
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X[:6000], columns=["a", "b", "c"]).assign(y=y[:6000])
    frame.to_parquet("d.parquet", row_group_size=1000)
    seed = np.random.RandomState(0).randint(2**31 - 1)  # of the map, from that of the table
    pool = pool_rows(6000, 250, 0)  # 5000 rows
    options = dict(landmarks=250, regressor="kernel", log_odds=100)  # no branch without support
    model = IteratedDiffusionMap(random_state=seed, **options).fit(
        frame[["a", "b", "c"]].iloc[pool], y[pool]
    )
    line = "fit d.parquet --feature y --landmarks 250 --regressor kernel --log-odds 100"
    assert main([*line.split(), *"--holdout 0 --scale none --out o --quiet".split()]) == 0
    found = TableMap.load("o/model.npz").fitted_
    assert np.array_equal(found.rows.numbers - 1, pool[model.landmarks_])
    assert np.allclose(found.model.embedding_, model.embedding_)
    values, errors = model.predict(frame[["a", "b", "c"]], return_std=True)
    table = pd.read_csv("o/predictions.csv")
    assert np.allclose(table["predicted_y"], values)
    assert np.allclose(table["standard_error"], errors)


def test_landmarks_are_drawn_as_if_one_by_one():
    "Two far rows of twelve are among three landmarks as often as in k-means++; equal rows come last."
    points = np.r_[np.random.default_rng(0).normal(size=(10, 2)), [[6, 0], [0, 9]]]
    drawn = np.zeros((2, 12))
    for seed in range(3000):
        given = dict(n_local_trials=1, random_state=seed)
        drawn[0][spread_rows(points, 3, np.random.RandomState(seed))] += 1
        drawn[1][kmeans_plusplus(points, 3, **given)[1]] += 1
    assert np.abs(drawn[0] - drawn[1]).max() < 0.04 * 3000  # three standard deviations
    twins = np.repeat(points[:5], 4, axis=0)
    found = spread_rows(twins, 12, np.random.RandomState(0))
    assert len(np.unique(found)) == 12 and len(np.unique(twins[found[:5]], axis=0)) == 5
