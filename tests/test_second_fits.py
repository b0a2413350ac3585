"""A fit is one value: a fit that fails leaves the one before it, and a second fit equals a first."""

import pickle
import sys
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import idm_nb
from idm_nb.branches import Branches
from idm_nb.datasets import feature_example

RNG = np.random.default_rng(0)
X, Y, _ = feature_example("torus x", 160, random_state=0)
Y = Y[:, 0] + 0.1 * RNG.normal(size=160)
OTHER = 2 * RNG.normal(size=(130, 5)) + 1
SQUARE = OTHER[:, 0] ** 2
PAPER = dict(n_neighbors=40, n_bandwidths=10, n_components=8)
STEPS = dict(regressor="ridge", flow="diffusion")
TABLES = [
    pd.DataFrame(x).rename(columns="x{}".format).assign(y=y, word=np.where(x[:, 1] > 0, "a", "b"))
    for x, y in ((X, Y), (OTHER, SQUARE))
]
KERNEL = idm_nb.IteratedDiffusionMap(regressor="kernel")
CASES = {
    "map": (KERNEL, (X, Y), (OTHER, SQUARE)),
    "steps": (idm_nb.IteratedDiffusionMap(2, **STEPS), (X, Y), (OTHER, SQUARE)),
    "regressor": (idm_nb.FeatureRegressor(["ridge", "kernel"]), (X, Y), (OTHER, SQUARE)),
    "table": (idm_nb.TableMap("y", model=KERNEL), TABLES[:1], TABLES[1:]),
    "paper": (idm_nb.PaperIteratedDiffusionMap(2, **PAPER), (X, Y), (OTHER, SQUARE)),
    "diffusion map": (idm_nb.DiffusionMap(5), (X,), (OTHER,)),
    "components": (idm_nb.NonlinearICA(2, rank=2), (X,), (OTHER,)),
    "conformal": (idm_nb.ConformalMap(4), (X,), (OTHER,)),
    "diffeomorphism": (idm_nb.DiffeomorphismMap(6), (X, X[:, :2]), (OTHER, OTHER[:, :2])),
}


@pytest.fixture(params=CASES)
def case(request):
    model, *data = CASES[request.param]
    return clone(model).set_params(random_state=0), *data


class Interrupt:
    "Stop the program where the function number `at` of the package is called."

    def __init__(self, at=np.inf):
        self.at, self.count = at, 0

    def __call__(self, frame, event, arg):
        if event == "call" and "idm_nb" in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt

    def during(self, call, *data):
        sys.setprofile(self)
        try:
            return call(*data)
        finally:
            sys.setprofile(None)


def answers(model, data):
    "All that a fitted model says, as a dict."
    new = data[0] if isinstance(data[0], pd.DataFrame) else data[0] + 0.01
    calls = "transform predict predict_interval assign assign_proba is_novel kneighbors alike"
    found = {name: getattr(model, name)(new) for name in calls.split() if hasattr(model, name)}
    public = {name for name in dir(model) if name.endswith("_") and name[0] != "_"}
    return found | {name: getattr(model, name) for name in public - {"seconds_"}}


def same(one, other):
    "Are two results equal, bit for bit and in their kinds?"
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        names = one.keys() - {"seconds", "seconds_"}
        return list(one) == list(other) and all(same(one[name], other[name]) for name in names)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if hasattr(one, "tocsr"):
        return same(vars(one), vars(other))
    if hasattr(one, "__dict__") and not isinstance(one, type):
        return same(one.__getstate__(), other.__getstate__())
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_fails_leaves_the_old_answers(case):
    model, first, second = case
    model.fit(*first)
    before, state = answers(model, first), pickle.dumps(model)
    counter = Interrupt()
    counter.during(clone(model).fit, *second)
    for at in np.linspace(1, 0.98 * counter.count, 6).astype(int):  # the last ones follow the fit
        with pytest.raises(KeyboardInterrupt):
            Interrupt(at).during(model.fit, *second)
        assert pickle.dumps(model) == state
    bad = second[0].assign(y=1.0) if isinstance(second[0], pd.DataFrame) else second[0] * np.nan
    with pytest.raises(ValueError):
        model.fit(bad, *second[1:])
    model.set_params(random_state="no")
    with pytest.raises(ValueError):
        model.fit(*second)
    model.set_params(random_state=0)
    assert same(answers(model, first), before)


@pytest.mark.filterwarnings("ignore")
def test_a_second_fit_equals_a_first(case):
    model, first, second = case
    if not isinstance(second[0], pd.DataFrame):  # columns with names, which the other fit has not
        second = pd.DataFrame(second[0]).add_prefix("x"), *second[1:]
    again = clone(model).fit(*second)
    answers(again, second)  # what is computed when it is asked for is there
    before = pickle.dumps([*first, *second])
    assert same(answers(again.fit(*first), first), answers(model.fit(*first), first))
    assert pickle.dumps([*first, *second]) == before


def test_branches_are_a_value():
    found = Branches(X, Y[:, None])
    state = pickle.dumps(found)
    answer = found.assign(X, Y[:, None])
    assert pickle.dumps(found) == state and same(Branches(X, Y[:, None]), found)
    assert np.array_equal(pickle.loads(state).assign(X, Y[:, None]), answer)


@pytest.mark.filterwarnings("ignore")
def test_pickles_hold_no_caches(case, tmp_path):
    model, data, _ = case
    answers(model.fit(*data), data)
    model.save(tmp_path / "m.npz")
    with ZipFile(tmp_path / "m.npz") as file:
        size = sum(part.file_size for part in file.infolist())
    assert len(pickle.dumps(model)) < 1.5 * size
