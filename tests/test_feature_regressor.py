"""The estimate of the feature takes any regressor, names them apart, counts rows, and is saved whole."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import idm_nb
from idm_nb import FeatureRegressor, IteratedDiffusionMap
from idm_nb.datasets import feature_example
from idm_nb.regression import ErrorModel, KernelRegression
from idm_nb.regression.candidates import Discriminant, ForestEstimate
from idm_nb.regression.held_out import HeldOut
from idm_nb.regression.verdict import judge


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)


# all candidates are in the default of IteratedDiffusionMap, which is checked as well
@parametrize_with_checks([FeatureRegressor(["ridge", "kernel"])])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_conformance_of_the_regressor(estimator, check):
    check(estimator)


@pytest.mark.parametrize("order", [1, -1])
def test_two_candidates_of_one_class_are_both_there(order):
    X, y = table()
    pair = [SVR(C=1000), SVR(C=1e-4)][::order]
    model = FeatureRegressor(pair, random_state=0).fit(X, y)
    assert list(model.r2_) == ["svr-1", "svr-2"]
    assert model.weights_[f"svr-{1 if order == 1 else 2}"] > 0.9


def test_names_of_classes_mean_nothing():
    X, y = table()
    for name in ("ridge", "kernel", "RidgeEstimate"):
        forest = type(name, (RandomForestRegressor,), {})
        model = FeatureRegressor([forest(20)], random_state=0).fit(X, y)
        assert np.isnan(model.mixture_.line_r2) and np.isfinite(model.noise_share_)
    model = FeatureRegressor(["ridge", Ridge(), Ridge(9.0)], random_state=0).fit(X, y)
    assert list(model.r2_) == ["ridge", "ridge-1", "ridge-2"]
    with pytest.raises(ValueError, match="twice"):
        FeatureRegressor(["ridge", "ridge"]).fit(X, y)


@pytest.mark.parametrize(
    "regressor",
    [
        KNeighborsRegressor(),
        make_pipeline(StandardScaler(), SVR()),
        make_pipeline(StandardScaler(), RandomForestRegressor(10)),
        RandomForestRegressor(10),
        KernelRegression(n_rounds=0),
        "boosting",
        "discriminant",
    ],
    ids=lambda r: r if isinstance(r, str) else type(r).__name__,
)
def test_any_regressor_with_repeated_rows(regressor):
    X, y = table()
    model = FeatureRegressor([regressor], random_state=0)
    rows = np.r_[np.arange(120), np.arange(40)]
    repeated = model.fit(X[rows], y[rows]).predict(X)
    weighted = model.fit(X, y, sample_weight=np.bincount(rows)).predict(X)
    assert np.allclose(repeated, weighted, rtol=1e-9)


def test_few_values_in_any_order(tmp_path):
    "Six clusters, whose value has nothing to do with their place."
    rng = np.random.default_rng(0)
    place, label = 2 * rng.normal(size=(6, 10)), rng.integers(0, 6, 700)
    X, y = place[label] + rng.normal(size=(700, 10)), label.astype(float)
    model = FeatureRegressor(random_state=0).fit(X[:200], y[:200])
    known = softmax(-0.5 * cdist(X, place, "sqeuclidean"), axis=1) @ np.arange(6)
    best = r2_score(y[200:], known[200:])
    assert model.weights_["discriminant"] > 0.5 and model.score(X[200:], y[200:]) > best - 0.01
    ends = model.predict_interval(X[200:])
    assert 0.87 < np.mean((ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1])) < 0.97
    model.save(tmp_path / "m.npz")
    assert np.array_equal(FeatureRegressor.load(tmp_path / "m.npz").predict(X), model.predict(X))
    noise = FeatureRegressor(random_state=0).fit(X, rng.integers(0, 6, 700))
    assert abs(noise.mixture_.claim.r2) < 0.03  # 700 rows: a standard error of about a hundredth
    other = FeatureRegressor(random_state=0).fit(X[:200], X[:200, 0])
    assert "discriminant" in noise.weights_ and "discriminant" not in other.weights_
    rows = np.r_[np.arange(60), np.arange(20)]
    for table, values in ((X, y), (X, X[:, :2]), (np.eye(60, 12), np.c_[y[:60], y[:60]])):
        found = Discriminant().fit(table[:60], values[:60], sample_weight=0.3 * np.bincount(rows))
        assert np.isfinite(found.predict(table)).all()
        again = Discriminant().fit(table[:60], values[:60], sample_weight=7.0 * np.bincount(rows))
        assert np.allclose(found.predict(table), again.predict(table), atol=1e-9)
    # the rows with a spread within their value count little
    counts = np.array([1.0, 1, 7, 1, 1, 1])
    few = Discriminant().fit(X[:6], np.array([2.0, 0, 3, 1, 1, 0]), sample_weight=counts)
    assert np.isfinite(few.predict(X)).all()


def test_weights_that_are_no_counts():
    X, y = table()
    weight = np.linspace(0.5, 2.5, len(X))
    model = FeatureRegressor(random_state=0).fit(X, y, sample_weight=weight)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no weights"):
        FeatureRegressor([KNeighborsRegressor()]).fit(X, y, sample_weight=weight)
    for bad in (-weight, weight[:5], np.zeros(len(X)), np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match="[Ss]ample.weight"):
            FeatureRegressor(["ridge"]).fit(X, y, sample_weight=bad)


def test_rows_without_weight_are_new_rows():
    X, y = table()
    weight = np.r_[np.ones(100), np.zeros(20)]
    model = FeatureRegressor(random_state=0).fit(X, y, sample_weight=weight)
    fewer = FeatureRegressor(random_state=0).fit(X[:100], y[:100])
    assert np.allclose(model.predict(X), fewer.predict(X))
    assert np.allclose(model.held_out_[100:, 0], fewer.predict(X[100:]))
    assert np.allclose(model.residuals_[:100], fewer.residuals_)
    assert np.isfinite(model.mixture_.line_r2)


def test_a_row_that_counts_often_has_a_held_out_value_of_the_forest():
    X, y = table(40)
    weights = np.r_[400.0, np.ones(39)]  # it is in the bag of every tree
    forest = ForestEstimate().fit(X, y[:, None] + 100, sample_weight=weights)
    assert np.abs(y - forest.residuals_[:, 0])[0] <= np.abs(y).max()


def test_random_states_of_the_user_stay_and_others_are_set():
    X, y = table()
    own = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=3))
    fit = FeatureRegressor([own], random_state=0).fit(X, y)
    assert [m[-1].random_state for m in fit.candidates_["pipeline"].models_] == [3] * 5
    assert own[-1].random_state == 3
    nested = make_pipeline(StandardScaler(), RandomForestRegressor(5))
    twice = [FeatureRegressor([nested], random_state=0).fit(X, y).predict(X) for _ in range(2)]
    assert np.array_equal(*twice) and nested[-1].random_state is None
    drawn = IteratedDiffusionMap(regressor=FeatureRegressor(["forest"]), random_state=0)
    assert np.array_equal(*(clone(drawn).fit(X, y).predict(X) for _ in range(2)))


def test_threads_change_nothing():
    X, y = table(250)
    one, two = (FeatureRegressor(n_jobs=n, random_state=0).fit(X, y) for n in (None, 2))
    assert np.allclose(one.predict(X), two.predict(X), rtol=1e-10)
    assert np.allclose(one.learning_curve_.errors, two.learning_curve_.errors, rtol=1e-10)


def test_rows_that_are_changed_in_place_are_other_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 0.5, 0]
    KernelRegression().fit(X, X[:, :1] ** 2)
    X[:] = rng.normal(size=(200, 3)) * [0, 0.5, 1]
    y = X[:, 2:] ** 2
    assert KernelRegression().fit(X, y).r2(y) > 0.97


def test_equal_rows_are_left_out_together():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(60, 3)), 2, axis=0), np.repeat(rng.normal(size=60), 2)
    assert FeatureRegressor(random_state=0).fit(X, y).r2(y[:, None]) < 0.3


@pytest.mark.parametrize("candidates", ["auto", ["boosting", "ridge"]], ids=str)
def test_a_saved_regressor_says_the_same(tmp_path, candidates):
    X, y = table(300)
    model = FeatureRegressor(candidates, random_state=0).fit(X, y)
    assert model.predict(X, return_std=True)[1].shape == y.shape
    model.save(tmp_path / "m.npz")
    again = idm_nb.load(tmp_path / "m.npz")
    for one, other in zip(model.predict(X, return_std=True), again.predict(X, return_std=True)):
        assert np.allclose(one, other, rtol=1e-9)
    # 1000 x 1000 numbers of the error model are not in the file
    assert (tmp_path / "m.npz").stat().st_size < 4e5
    assert again.learning_curve_.errors.tolist() == model.learning_curve_.errors.tolist()


@pytest.mark.parametrize("name", ["annulus radius", "torus phi", "sphere twisted"])
def test_clean_features_are_never_called_noise(name):
    X, y, _ = feature_example(name, 300, random_state=0)
    verdict = judge(FeatureRegressor(random_state=0).fit(X, y))
    assert verdict.beats_chance and "noise" not in str(verdict)
    noisy = y + 0.3 * y.std(axis=0) * np.random.default_rng(0).normal(size=y.shape)
    assert FeatureRegressor(random_state=0).fit(X, noisy).noise_share_ > 0.8


@pytest.mark.parametrize("n_rows", [5, 8, 12, 20, 60, 100])
def test_verdict_on_few_rows_and_on_noise(n_rows):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n_rows, 12)), rng.normal(size=(n_rows, 1))
        estimate = FeatureRegressor(["ridge", "kernel"], random_state=0).fit(X, y)
        verdict = judge(estimate)
        assert not verdict.beats_chance
        if verdict.kind != "perhaps":
            assert ("too few" in str(verdict)) == (n_rows < verdict.enough)
        assert verdict.warnings()


def test_a_strong_relation_is_seen_from_twenty_rows():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = X[:, :1] + 0.01 * X[:, 1:]
    assert judge(FeatureRegressor(random_state=0).fit(X, y)).beats_chance


@pytest.mark.parametrize("kind", ["two per cent", "five equal"])
def test_a_few_wild_rows_are_named_beside_the_share(kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, noise = rng.normal(size=(1350, 5)), rng.normal(size=(1350, 1))
        clean = X[:, :1] + np.sin(2 * X[:, 1:2]) + 0.5 * noise
        y = clean.copy()
        if kind == "two per cent":
            y[:7] += rng.choice([-1, 1], (7, 1)) * rng.uniform(8, 20, (7, 1))
        else:
            y[:5] = 20.0
        model = FeatureRegressor(["ridge", "kernel"], random_state=0).fit(X[:350], y[:350])
        verdict = judge(model)
        others = 1 - np.mean((clean[350:] - model.predict(X[350:])) ** 2) / clean[350:].var()
        assert "7 rows with the largest errors" in str(verdict) and verdict.r2 < others - 0.15
        assert abs(verdict.few_rows[2] - others) < 0.15
        plain = FeatureRegressor(["ridge", "kernel"], random_state=0).fit(X[:350], clean[:350])
        assert "largest error" not in str(judge(plain))


def test_a_share_that_may_be_zero_is_enough_for_nothing():
    X, y = table()
    known = judge(FeatureRegressor(["ridge"], random_state=0).fit(X, y + X[:, 0]))
    assert "is enough" in str(replace(known, line=known.r2))
    sixteen = replace(known, r2=0.11, low=-0.02, high=0.42, line=0.16)
    assert sixteen.beats_chance and "is enough" not in str(sixteen)
    assert "was nearly the same." in str(replace(known, half=0.97))
    assert "was no larger." in str(replace(known, half=0.9))


def test_columns_of_rounding_errors_are_no_columns():
    from idm_nb.regression.verdict import uneven_column

    X = np.random.default_rng(0).normal(size=(200, 6))
    assert uneven_column(X * np.r_[np.ones(2), np.full(4, 1e-15)]) is None
    assert uneven_column(X * np.r_[1e6, np.ones(5)])[0] == 0


def test_an_interval_counts_the_new_row_too():
    "Of 21 rows that are alike, one is below the 19th of the others with probability 19 / 21 > 0.9."
    points, residuals = np.random.default_rng(0).normal(size=(2, 20, 1))
    errors = ErrorModel(points, residuals)
    assert errors.quantile(0.9) == np.sort(np.abs(errors.ratios))[18]


def test_one_more_row_may_be_missed_where_none_was():
    points, classes = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40.0)[:, None] % 2
    errors = ErrorModel(points, 0 * classes, values=classes, features=classes)
    assert np.allclose(errors(points[:5], classes[:5]), 0.5 / np.sqrt(41))
    low, high = HeldOut(classes, classes).range()
    assert low == pytest.approx(1 - 0.25 / 2, abs=0.06) and high == 1  # one of 8 rows missed
    numbers = np.random.default_rng(1).normal(size=(40, 1))  # have no step
    errors = ErrorModel(points, 0.1 * numbers, values=numbers, features=numbers)
    assert errors.scale == pytest.approx(0.1 * np.sqrt(np.mean(numbers**2)), rel=0.01)


@pytest.mark.parametrize("n, of_group", [(6, 1), (12, 1), (6, 5)])
def test_intervals_hold_from_few_rows_or_groups(n, of_group):
    held = []
    for seed in range(40):
        rng, label = np.random.default_rng(seed), np.repeat(np.arange(n + 60), of_group)
        X, seen = rng.normal(size=(len(label), 4)), label < n
        y = X[:, 0] + rng.normal(size=n + 60)[label] + 0.1 * rng.normal(size=len(label))
        model = FeatureRegressor(["ridge"], random_state=0)
        model.fit(X[seen], y[seen], groups=label[seen])
        low, high = model.predict_interval(X[~seen]).T
        held.append(np.mean((low <= y[~seen]) & (y[~seen] <= high)))
    assert np.mean(held) > 0.88


def test_a_feature_far_from_all_others_changes_nothing():
    X, y = table(300)
    wild = np.where(np.arange(300) == 7, 1e3, y)
    with pytest.warns(UserWarning, match="Row 7 is far from all other rows"):
        model = FeatureRegressor(["ridge"], random_state=0).fit(X, wild)
    others = FeatureRegressor(["ridge"], random_state=0).fit(np.delete(X, 7, 0), np.delete(y, 7))
    said, true = (m.predict(X, return_std=True) for m in (model, others))
    assert np.allclose(said, true, rtol=0.05) and model.residuals_[7, 0] == 1e3 - said[0][7]


def test_errors_of_noise_are_its_deviation():
    "Left-out means are low where the row itself is high; no prediction of a new row tells so much."
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(900, 4)), rng.normal(size=900)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not better than chance
            model = FeatureRegressor(["ridge"], random_state=0).fit(X[:300], y[:300])
        error = model.predict(X[300:], return_std=True)[1]
        assert 0.8 < np.sqrt(np.mean(error**2)) < 1.2
