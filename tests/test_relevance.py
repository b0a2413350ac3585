"""Relevance of columns: known answers, properties, and bad input."""

import time

import numpy as np
import pytest
from book import refuses
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from idm_nb import DiffusionMap, FeatureRegressor, IteratedDiffusionMap, feature_relevance
from idm_nb.datasets import wave_images
from idm_nb.study import Relevance
from idm_nb.study.images import functions_on

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(900, 5))
X[:, 4] = 3.0  # a constant column is legal and irrelevant
Y = 2 * X[:, 0] + X[:, 1]
NEW = RNG.uniform(-1, 1, size=(600, 5))
NEW[:, 4] = 3.0
NEW_Y = 2 * NEW[:, 0] + NEW[:, 1]


@pytest.fixture(scope="module")
def model():
    return IteratedDiffusionMap(random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", ["projection", "permutation"])
def test_linear_feature_of_independent_columns(model, kind):
    result = feature_relevance(model, NEW, NEW_Y, kind=kind)
    for found in (result.values, feature_relevance(model, NEW, kind=kind).values):
        # shares of the variance are 4/5 and 1/5; a correlation of 600 rows is known to about 0.04
        assert np.abs(found - [0.8, 0.2, 0, 0, 0]).max() < 0.1 and found[4] == 0
    assert result.above.tolist() == [True, True, False, False, False]
    assert (result.p_values[:2] == 1 / 200).all() and (result.p_values[2:] > 0.05).all()
    assert np.array_equal(result.above, result.p_values <= 0.05)
    assert [row[0] for row in result.ranked()][:2] == ["x0", "x1"]


def test_chance_of_a_projection_is_its_number_of_functions(model):
    result = feature_relevance(model, NEW, kind="projection", n_functions=6)
    # n functions explain n / (N - 1)
    assert abs(np.mean(result.chance[:4]) * (len(NEW) - 1) - 6) < 0.5


@pytest.mark.parametrize("kind", ["projection", "permutation"])
def test_same_seed_same_result_and_values_agree(model, kind):
    options = dict(kind=kind, random_state=3, n_rows=100)
    first, second = (feature_relevance(model, NEW, NEW_Y, **options) for _ in range(2))
    assert first.threshold == second.threshold
    assert np.array_equal(first.values, second.values)


def test_correlated_columns_pass_by_projection_and_not_by_permutation():
    passed, ridge = {}, FeatureRegressor(["ridge"])
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(1000, 8))
        # four columns that go with the cause, and two of noise
        table[:, 2:6] += 1.5 * table[:, [0]]
        y = table[:, 0] + 0.5 * table[:, 1] + 0.3 * rng.normal(size=1000)
        fitted = IteratedDiffusionMap(regressor="ridge", random_state=0).fit(table[:500], y[:500])
        for kind in ("projection", "permutation"):
            options = dict(kind=kind, random_state=seed, regressor=ridge)
            above = feature_relevance(fitted, table[500:], y[500:], **options).above
            passed[kind] = passed.get(kind, 0) + above
    assert (passed["projection"][2:6] == 6).all()
    assert (passed["permutation"][:2] == 6).all() and passed["permutation"][2:].sum() <= 2


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(30), 4)], ids=["rows", "groups"])
def test_false_alarms_of_permutation(groups):
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(240, 6)) @ (np.eye(6) + 0.3 * rng.normal(size=(6, 6)))
        y = table[:, 0] + np.sin(table[:, 1]) + rng.normal(size=240)
        kernel = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.1).fit(table[:120], y[:120])
        rows, y = table[120:], y[120:]
        if groups is not None:  # four rows of one person
            rows, y = rows[groups] + 0.1 * rng.normal(size=rows.shape), y[groups]
        ridge = FeatureRegressor(["ridge"], random_state=seed)
        options = dict(groups=groups, regressor=ridge, random_state=seed)
        false += feature_relevance(kernel, rows, y, **options).above[2:].any()
    assert false <= 6  # 40 draws of 0.05 give more with probability 0.003


def test_stepping_down_lets_weak_columns_through():
    weak = LinearRegression().fit(X[:, :4], 20 * X[:, 0] + X[:, 1])
    noisy = 20 * NEW[:, 0] + NEW[:, 1] + 0.1 * RNG.normal(size=600)
    result = feature_relevance(weak, NEW[:, :4], noisy)
    assert result.above.tolist() == [True, True, False, False] and result.values[1] < 0.005


def test_free_of_units():
    units = np.array([1e3, 1e-3, 1, 7, 1])
    model = IteratedDiffusionMap(2, regressor="kernel", random_state=0)
    pipe, other = (make_pipeline(StandardScaler(), clone(model)).fit(X * u, Y) for u in (1, units))
    for kind in ("projection", "permutation"):
        first = feature_relevance(pipe, NEW, kind=kind, n_rows=200)
        second = feature_relevance(other, NEW * units, kind=kind, n_rows=200)
        assert np.allclose(first.values, second.values, atol=1e-6)


def test_models_without_prediction():
    stretched = NEW * [3, 2, 1, 0.5, 1]
    principal = PCA(2).fit(stretched)
    # a cosine explains 96 / pi^4 = .9855 of a column
    for kind, least in (("projection", 0.98), ("permutation", 0.25)):
        found = feature_relevance(principal, stretched, kind=kind).values
        # the two axes are the two columns
        assert found[:2].min() > least and found[2:].max() < 0.05
    rng = np.random.default_rng(0)  # of its own: a column of noise passes in one draw of twenty
    circle = 2 * np.pi * rng.uniform(size=400)
    ring = np.c_[np.cos(circle), np.sin(circle), 0.01 * rng.normal(size=400)]
    plain = DiffusionMap(4, random_state=0).fit(ring)
    assert feature_relevance(plain, ring, kind="projection").above.tolist() == [True, True, False]


def test_columns_that_stand_for_each_other_are_tested_as_a_set():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(800, 4))
    table[:, 2] = table[:, :2].mean(axis=1)
    y = table[:, 2] + 0.2 * rng.normal(size=800)
    family = FeatureRegressor(random_state=0).fit(table[:400], y[:400])
    result = feature_relevance(family, table[400:], y[400:])
    (names, value, p_value, above), *others = result.sets
    assert not others and names == ["x0", "x1", "x2"] and above and p_value <= 0.05
    assert value > 0.5 and not result.above.any()
    common = rng.normal(size=(800, 1))  # 32 genes of one programme, and 8 others
    genes = np.hstack([common + 0.3 * rng.normal(size=(800, 32)), rng.normal(size=(800, 8))])
    y = common[:, 0] + 0.2 * rng.normal(size=800)
    line = FeatureRegressor(["ridge"], random_state=0).fit(genes[:400], y[:400])
    result = feature_relevance(line, genes[400:], y[400:])
    assert [(len(names), above) for names, _, _, above in result.sets] == [(32, True)]
    assert result.sets[0][1] > 0.8


def test_a_pixel_of_waves_finds_its_half():
    phase = 2 * np.pi * np.arange(45) / 45
    images, first = wave_images(*(part.ravel() for part in np.meshgrid(phase, phase)))
    rows, first = images.reshape(len(images), -1), first.ravel()
    pixel = rows[:, np.flatnonzero(first)[100]]
    fitted = FeatureRegressor(["kernel"], random_state=0).fit(rows, pixel)
    start = time.process_time()
    result = feature_relevance(fitted, rows, pixel)
    assert time.process_time() - start < 20
    # no pixel is needed, because the others of its half determine it
    assert np.abs(result.values).max() < 1e-9 and not result.above.any()
    halves = {above: np.isin(np.array(result.names), names) for names, _, _, above in result.sets}
    assert np.array_equal(halves[True], first) and np.array_equal(halves[False], ~first)


def test_a_relevance_that_prints_as_zero_matters_not():
    draws = np.random.default_rng(0).normal(size=(199, 2)) * 1e-25
    result = Relevance.of(["a", "b"], np.array([1e-23, 0.2]), draws, "permutation", 0.05)
    assert result.above.tolist() == [False, True] and (result.p_values <= 0.05).all()


def test_data_frames_lend_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    fitted = IteratedDiffusionMap(1, regressor="ridge").set_output(transform="pandas")
    fitted.fit(frame, Y)
    new = pandas.DataFrame(NEW[:, :3], columns=["a", "b", "c"])
    assert feature_relevance(fitted, new, kind="projection").names == ["a", "b", "c"]
    result = feature_relevance(fitted, new, NEW_Y)
    assert result.names == ["a", "b", "c"] and result.above.tolist() == [True, True, False]


def test_functions_that_are_constant_on_the_rows(model):
    alone = np.tile(NEW[:1], (20, 1))
    assert (feature_relevance(model, alone).values == 0).all()
    with pytest.raises(ValueError, match="the model puts all rows of X in the same place"):
        feature_relevance(model, alone, kind="projection")


def test_basis_of_an_interval_is_cosines():
    line = np.sort(RNG.uniform(size=(800, 1)), axis=0)
    basis = functions_on(line, 4)
    exact = np.cos(np.pi * np.arange(5) * line)
    correlation = [abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(basis(line).T[1:], exact.T[1:])]
    assert min(correlation) > 0.98
    copies = functions_on(np.repeat(line, 50, axis=0), 4)  # rows that coincide
    assert np.allclose(copies(line), basis(line))


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(kind="global"), ValueError, "kind='global' is not known; choose one of"),
        (dict(n_functions=0), ValueError, "n_functions must be an integer, 1 or more, got 0"),
        (dict(n_functions="all"), TypeError, "n_functions must be an integer, got 'all'"),
        (dict(level=0), ValueError, "level must lie between 0 and 1, got 0"),
        (dict(n_permutations=5), ValueError, "cannot reach level=0.05: give at least 19"),
        (dict(n_permutations=0), ValueError, "n_permutations must be an integer, 1 or more"),
        (
            dict(groups=np.arange(7)),
            ValueError,
            "one label for each of the 600 rows of X, got shape",
        ),
        (dict(groups=np.arange(600) % 3), ValueError, "groups has 3 different labels: at least 8"),
        (dict(y=NEW_Y[:9]), ValueError, "y has 9 rows but X has 600"),
        (dict(n_rows=2), ValueError, "n_rows must be an integer, 8 or more"),
    ],
)
def test_bad_arguments(model, arguments, error, words):
    refuses(words, lambda: feature_relevance(model, NEW, **{"y": NEW_Y, **arguments}), error)


def test_bad_rows_and_models(model):
    spoiled = NEW.copy()
    spoiled[17, 2] = np.nan
    for kind in ("projection", "permutation"):
        with pytest.raises(ValueError, match="X contains NaN at row 17, column 2"):
            feature_relevance(model, spoiled, kind=kind)
        with pytest.raises(ValueError, match="X has 4 features, but .* is expecting 5"):
            feature_relevance(model, NEW[:, :4], kind=kind)
        refuses("minimum of 8", lambda: feature_relevance(model, NEW[:3], kind=kind))
        with pytest.raises(NotFittedError):
            feature_relevance(IteratedDiffusionMap(), NEW, kind=kind)
    with pytest.raises(ValueError, match="X has 10 rows, too few to project on .* functions"):
        feature_relevance(model, NEW[:10], kind="projection")
    with pytest.raises(ValueError, match="on 16 functions: give at least 64 rows"):
        feature_relevance(model, NEW[:12], kind="projection", n_functions=16)
    with pytest.raises(TypeError, match="LinearRegression has no transform"):
        feature_relevance(LinearRegression().fit(X, Y), NEW, kind="projection")
    with pytest.raises(TypeError, match="DBSCAN has neither predictions nor coordinates"):
        feature_relevance(DBSCAN().fit(X), NEW)
    refuses("n_functions must be an integer", lambda: functions_on(NEW, 2.5), TypeError)
