"""Fits of dask arrays and frames: the same rows whatever the parts, honest errors, and a worker that is killed."""

import os
import signal

import numpy as np
import pytest
from sklearn.cluster import kmeans_plusplus
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

from idm_nb import DiffusionMap, FeatureRegressor, IteratedDiffusionMap, TableMap
from idm_nb.command.command_line import main
from idm_nb.core.rows import spread_rows
from idm_nb.datasets import feature_example
from idm_nb.diffusion import recall_by_component

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def torus():
    "8000 rows of a torus with feature x and noise of a tenth of its spread."
    X, y, _ = feature_example("torus x", 8000, random_state=0)
    return X, y[:, 0], y[:, 0] + 0.1 * np.random.default_rng(1).normal(size=8000)


@pytest.fixture(scope="module")
def fitted(torus):
    X, _, y = torus
    lazy = da.from_array(X[:6000], chunks=(700, 2)), da.from_array(y[:6000], chunks=900)
    return IteratedDiffusionMap(landmarks=600, regressor="kernel", random_state=0).fit(*lazy)


def test_the_landmarks_are_rows_of_the_table(torus, fitted):
    X, _, y = torus
    assert len(fitted.landmarks_) == 600 and len(np.unique(fitted.landmarks_)) == 600
    assert np.array_equal(fitted.map_.rows.X[fitted.map_.rows.inverse], X[fitted.landmarks_])
    assert np.array_equal(fitted.map_.rows.y[fitted.map_.rows.inverse, 0], y[fitted.landmarks_])


def test_parts_and_kinds_of_tables_change_nothing(torus, fitted):
    X, _, y = torus
    frame = pd.DataFrame(X[:6000], columns=["a", "b", "c"]).assign(y=y[:6000])
    lazy = dd.from_pandas(frame, npartitions=5)
    unknown = lazy[["a", "b", "c"]].to_dask_array()  # chunks without lengths
    for rows, feature in (
        (lazy[["a", "b", "c"]], lazy["y"]),
        (lazy[["a", "b", "c"]], y[:6000]),
        (unknown, y[:6000].tolist()),
    ):
        model = IteratedDiffusionMap(landmarks=600, regressor="kernel", random_state=0).fit(
            rows, feature
        )
        assert np.array_equal(model.landmarks_, fitted.landmarks_)
        assert np.array_equal(model.embedding_, fitted.embedding_)
    moved = model.fit_transform(lazy[["a", "b", "c"]].to_dask_array(lengths=True), y[:6000])
    assert moved.shape[0] == 6000 and type(moved).__module__.startswith("dask")


def test_the_result_is_that_of_a_fit_in_memory(torus, fitted):
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


def test_weights_groups_and_gaps_are_lazy_as_well(torus):
    X, _, y = torus
    gaps = np.where(np.arange(2000) % 3, y[:2000], np.nan)
    weight, groups = np.arange(2000) % 2 + 1.0, np.arange(2000) // 4
    lazy = [da.from_array(part, chunks=300) for part in (X[:2000], gaps, weight, groups)]
    given = dict(sample_weight=lazy[2], groups=lazy[3])
    model = IteratedDiffusionMap(landmarks=300, regressor="kernel", random_state=0).fit(
        *lazy[:2], **given
    )
    kept = model.landmarks_
    assert np.array_equal(model.map_.rows.known[model.map_.rows.inverse], kept % 3 > 0)
    # rows of 2000 of which all are in the pool: the draw is that of a fit in memory
    parts = X[:2000], gaps
    given = dict(sample_weight=weight, groups=groups)
    same = IteratedDiffusionMap(landmarks=300, regressor="kernel", random_state=0).fit(
        *parts, **given
    )
    assert np.array_equal(same.landmarks_, kept) and np.array_equal(
        same.embedding_, model.embedding_
    )


def test_given_landmarks_and_bad_ones(torus):
    X, _, y = torus
    lazy = da.from_array(X, chunks=1000)
    rows = np.arange(0, 8000, 20)
    model = IteratedDiffusionMap(landmarks=rows, random_state=0).fit(lazy, y)
    assert np.array_equal(model.landmarks_, rows)
    for landmarks in (2, 9000, [0, 8000], [-1, 3]):
        with pytest.raises(ValueError, match="landmarks must be"):
            IteratedDiffusionMap(landmarks=landmarks).fit(lazy, y)
    with pytest.raises(ValueError, match="has 7999"):
        IteratedDiffusionMap(landmarks=100).fit(lazy, y[1:])


def test_a_killed_worker_changes_nothing(torus, fitted, tmp_path):
    distributed = pytest.importorskip("distributed")
    X, _, y = torus
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        lazy = da.from_array(X[:6000], chunks=(200, 3)).map_blocks(
            end_once, str(tmp_path / "ended"), dtype=float, meta=X[:0]
        )
        model = IteratedDiffusionMap(landmarks=600, regressor="kernel", random_state=0).fit(
            lazy, y[:6000]
        )
    assert (tmp_path / "ended").exists()
    assert np.array_equal(model.landmarks_, fitted.landmarks_)
    assert np.array_equal(model.embedding_, fitted.embedding_)


def end_once(part, file):
    "The part; the first worker that gets here kills itself."
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return part
    os.kill(os.getpid(), signal.SIGKILL)


def test_lazy_rows_are_placed(torus, fitted):
    model, X = fitted, torus[0][6000:7000]
    lazy = da.from_array(X, chunks=(300, 2))
    for call in (model.transform, model.predict, DiffusionMap(3, random_state=0).fit(X).transform):
        found, expected = call(lazy), call(X)
        assert found.shape == expected.shape
        assert np.allclose(found.compute(scheduler="threads"), expected)
    bad = da.from_array(np.where(np.arange(1000)[:, None] == 500, np.nan, X), chunks=(300, 3))
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(bad).compute(scheduler="threads")
    for rows, words in ((da.ones((10, 5)), "has 5 columns"), (da.ones(10), "two dimensions")):
        with pytest.raises(ValueError, match=words):
            model.transform(rows)
    with pytest.raises(TypeError, match="unexpected keyword"):
        model.predict(lazy, errors=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(1000) * 2)
    for features in (X[:, 0], X):
        model = FeatureRegressor(["kernel"]).fit(frame[:300], features[:300])
        pair = model.predict(dd.from_pandas(frame, npartitions=3), return_std=True)
        for found, expected in zip(pair, model.predict(frame, return_std=True)):
            computed = found.compute(scheduler="threads")
            assert np.allclose(computed, expected) and (computed.index == frame.index).all()


def test_landmarks_stand_for_all():
    X, y, _ = feature_example("annulus radius", 3000, random_state=0)
    model = IteratedDiffusionMap(landmarks=500, random_state=0)
    moved = model.fit_transform(X, y)
    assert len(moved) == 3000 and len(model.embedding_) == len(model.landmarks_) == 500
    assert np.allclose(moved[model.landmarks_], model.embedding_) and model.score(X, y) > 0.999
    same = IteratedDiffusionMap(landmarks=model.landmarks_, random_state=0).fit(X, y)
    assert same.landmarks_.tolist() == model.landmarks_.tolist()
    for landmarks in (5000, 2, 0.5, [0, 9999], [0.5, 1.5]):
        with pytest.raises((ValueError, TypeError), match="landmarks must be"):
            IteratedDiffusionMap(landmarks=landmarks).fit(X, y)


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


def test_the_command_fits_the_rows_that_a_lazy_frame_fits(torus, tmp_path, monkeypatch):
    X, _, y = torus
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X[:6000], columns=["a", "b", "c"]).assign(y=y[:6000])
    frame.to_parquet("d.parquet", row_group_size=1000)
    lazy = dd.read_parquet("d.parquet")
    options = dict(landmarks=250, regressor="kernel", log_odds=100)  # no branch without support
    model = IteratedDiffusionMap(random_state=0, **options).fit(lazy[["a", "b", "c"]], lazy["y"])
    line = "fit d.parquet --feature y --landmarks 250 --regressor kernel --log-odds 100"
    assert main([*line.split(), *"--holdout 0 --scale none --out o --quiet".split()]) == 0
    found = TableMap.load("o/model.npz").fitted_
    assert np.array_equal(found.rows.numbers - 1, model.landmarks_)  # 5000 rows are in the pool
    assert np.allclose(found.model.embedding_, model.embedding_)
    values, errors = model.predict(lazy[["a", "b", "c"]], return_std=True)
    table = pd.read_csv("o/predictions.csv")
    assert np.allclose(table["predicted_y"], values.compute())
    assert np.allclose(table["standard_error"], errors.compute())


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
