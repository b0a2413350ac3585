"""A fit is one value: a fit that fails leaves the one before it, and a second fit equals a first."""

import pickle
from dataclasses import asdict
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from idm_nb import FeatureRegressor, IteratedDiffusionMap, TableMap
from idm_nb.datasets import feature_example

RNG = np.random.default_rng(0)
X, Y, _ = feature_example("torus x", 240, random_state=0)
Y = Y[:, 0] + 0.1 * RNG.normal(size=240)
OTHER = 2 * RNG.normal(size=(310, 5)) + 1


class Interrupted(LinearRegression):
    "Stops when it sees five columns."

    error = KeyboardInterrupt

    def fit(self, X, y):
        if X.shape[1] == 5:
            raise self.error("stopped")
        return super().fit(X, y)


class Refusing(Interrupted):
    error = ValueError


def answers(model, rows):
    "All that a fitted model says, as a dict."
    found = dict(predicted=model.predict(rows, return_std=True), residuals=model.residuals_)
    found |= dict(interval=model.predict_interval(rows), novel=model.is_novel(rows))
    if isinstance(model, FeatureRegressor):
        return found | dict(weights=model.weights_, r2=model.r2_, held_out=model.held_out_)
    found |= dict(
        map=model.transform(rows), branch=model.assign(rows), diagnostics=model.diagnostics_
    )
    found |= dict(embedding=model.embedding_, verdict=asdict(model.verdict_))
    return found | dict(near=model.kneighbors(rows), proba=model.assign_proba(rows))


def same(one, other):
    "Are two results equal, bit for bit?"
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


@pytest.mark.parametrize("kind", [Interrupted, Refusing])
@pytest.mark.parametrize("whole", [True, False], ids=["map", "regressor"])
def test_a_fit_that_fails_leaves_the_old_answers(whole, kind):
    estimate = FeatureRegressor(["kernel", kind()], random_state=0)
    model = IteratedDiffusionMap(regressor=estimate, random_state=0) if whole else estimate
    model.fit(X, Y)
    before, state = answers(model, X + 0.01), set(vars(model))
    with pytest.raises(kind.error):
        model.fit(OTHER, OTHER[:, 0])
    for bad in ((OTHER, OTHER[:9, 0]), (OTHER, np.ones(310)), (OTHER * np.nan, OTHER[:, 0])):
        with pytest.raises(ValueError):
            model.fit(*bad)
    model.set_params(random_state="no")
    with pytest.raises(ValueError):
        model.fit(OTHER, OTHER[:, 0])
    model.set_params(random_state=0)
    assert same(answers(model, X + 0.01), before) and set(vars(model)) == state


@pytest.mark.parametrize("whole", [True, False], ids=["map", "regressor"])
def test_a_second_fit_equals_a_first(whole):
    model = IteratedDiffusionMap(regressor="kernel", random_state=0)
    model = model if whole else FeatureRegressor(["ridge", "kernel"], random_state=0)
    second = clone(model).fit(OTHER, OTHER[:, 0] ** 2)
    answers(second, OTHER)  # what is computed when it is asked for is there
    assert same(answers(second.fit(X, Y), X + 0.01), answers(model.fit(X, Y), X + 0.01))


def test_pickles_hold_no_caches(tmp_path):
    table = {"a": X[:, 0], "b": X[:, 1], "y": Y}
    for model in (IteratedDiffusionMap(random_state=0).fit(X, Y), TableMap("y").fit(table)):
        inner = getattr(model, "model_", model)
        answers(inner, inner.map_.rows.X + 0.01)
        model.save(tmp_path / "m.npz")
        with ZipFile(tmp_path / "m.npz") as file:
            size = sum(part.file_size for part in file.infolist())
        assert len(pickle.dumps(model)) < 1.5 * size
