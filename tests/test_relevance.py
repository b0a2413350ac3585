"""Relevance of columns: known answers, properties, and bad input."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from idm_nb import DiffusionMap, IteratedDiffusionMap, feature_relevance, learned_basis, relevance_baseline

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(900, 5))
X[:, 4] = 3.0  # a constant column is legal and irrelevant
Y = 2 * X[:, 0] + X[:, 1]
NEW = RNG.uniform(-1, 1, size=(600, 5))
NEW[:, 4] = 3.0


@pytest.fixture(scope="module")
def model():
    return IteratedDiffusionMap(random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", ["projection", "local"])
def test_linear_feature_of_independent_columns(model, kind):
    found = feature_relevance(model, NEW, kind=kind)
    # shares of the variance are 4/5 and 1/5; a correlation of 600 rows is known to about 0.04
    assert found.shape == (5,) and np.abs(found - [0.8, 0.2, 0, 0, 0]).max() < 0.1
    assert found[4] == 0


def test_baseline_separates(model):
    result = relevance_baseline(model, NEW)
    assert result.above.tolist() == [True, True, False, False, False]
    assert (result.p_values[:2] == 1 / 200).all() and (result.p_values[2:] > 0.05).all()
    count = round(float(np.mean(result.chance[:4]) * (len(NEW) - 1)))
    assert count >= 4  # n functions explain n / (N - 1) by chance
    assert [row[0] for row in result.ranked()][:2] == ["x0", "x1"]


def test_same_seed_same_result_and_values_agree(model):
    first, second = (relevance_baseline(model, NEW, random_state=3) for _ in range(2))
    assert first.threshold == second.threshold
    assert np.array_equal(first.values, feature_relevance(model, NEW))


def test_projection_is_free_of_units(model):
    pipe = make_pipeline(StandardScaler(), IteratedDiffusionMap(2, random_state=0)).fit(X, Y)
    units = np.array([1e3, 1e-3, 1, 7, 1])
    other = make_pipeline(StandardScaler(), IteratedDiffusionMap(2, random_state=0)).fit(X * units, Y)
    first, second = feature_relevance(pipe, NEW), feature_relevance(other, NEW * units)
    assert np.allclose(first, second, atol=1e-6)


def test_models_without_prediction():
    principal = PCA(2).fit(NEW * [3, 2, 1, 0.5, 1])
    found = feature_relevance(principal, NEW * [3, 2, 1, 0.5, 1], n_coordinates=2)
    assert found[:2].min() > 0.99 and found[2:].max() < 0.05  # the two axes are the two columns
    circle = 2 * np.pi * RNG.uniform(size=400)
    ring = np.c_[np.cos(circle), np.sin(circle), 0.01 * RNG.normal(size=400)]
    plain = DiffusionMap(4, random_state=0).fit(ring)
    assert relevance_baseline(plain, ring).above.tolist() == [True, True, False]


def test_data_frames_lend_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    fitted = IteratedDiffusionMap(1, random_state=0).set_output(transform="pandas").fit(frame, Y)
    assert relevance_baseline(fitted, frame).names == ["a", "b", "c"]


def test_functions_that_are_constant_on_the_rows(model):
    alone = np.tile(NEW[:1], (20, 1))
    assert (feature_relevance(model, alone) == 0).all()
    assert (feature_relevance(model, alone + 0.0, kind="local") == 0).all()


@pytest.mark.parametrize("arguments, error, words", [
    (dict(kind="global"), ValueError, "kind='global' is not known; choose one of"),
    (dict(n_coordinates=0), ValueError, "n_coordinates must be an integer, 1 or more, got 0"),
    (dict(n_coordinates="all"), TypeError, "n_coordinates must be an integer, got 'all'"),
    (dict(level=0), ValueError, "level must lie between 0 and 1, got 0"),
    (dict(n_permutations=5), ValueError, "n_permutations=5 cannot reach level=0.05: give at least 19"),
    (dict(n_permutations=0), ValueError, "n_permutations must be an integer, 1 or more"),
    (dict(groups=np.arange(7)), ValueError, "groups has 7 rows but X has 600: one label a row"),
    (dict(groups=np.arange(600) % 3), ValueError, "groups has 3 different labels: at least 8"),
])  # fmt: skip
def test_bad_arguments(model, arguments, error, words):
    with pytest.raises(error, match=words):
        relevance_baseline(model, NEW, **arguments)


def test_bad_rows_and_models(model):
    spoiled = NEW.copy()
    spoiled[17, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 17, column 2"):
        feature_relevance(model, spoiled)
    with pytest.raises(ValueError, match="X has 4 features, but .* is expecting 5"):
        feature_relevance(model, NEW[:, :4])
    with pytest.raises(ValueError, match="X has 10 rows, too few to project on .* coordinates"):
        feature_relevance(model, NEW[:10])
    with pytest.raises(ValueError, match="minimum of 8"):
        feature_relevance(model, NEW[:3])
    with pytest.raises(TypeError, match="LinearRegression has no transform"):
        feature_relevance(LinearRegression().fit(X, Y), NEW)
    with pytest.raises(NotFittedError):
        feature_relevance(IteratedDiffusionMap(), NEW)
    with pytest.raises(TypeError, match="n_coordinates must be an integer"):
        learned_basis(model, NEW, 2.5)
