"""The estimators are scikit-learn estimators, and the map does what it promises."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from book import refuses
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import idm_nb
from idm_nb import (
    ConformalMap,
    DiffeomorphismMap,
    DiffusionFlow,
    DiffusionMap,
    FeatureRegressor,
    IteratedDiffusionMap,
    NonlinearICA,
    PaperIteratedDiffusionMap,
)
from idm_nb.datasets import feature_example, rotated_digits
from idm_nb.diffusion import neighbor_recall
from idm_nb.diffusion.numerics import nearest
from idm_nb.relatives import covariances_from_bursts

EXAMPLES = ["annulus radius", "annulus angle", "torus theta", "torus phi", "sphere x"]


@parametrize_with_checks(
    [
        IteratedDiffusionMap(),
        DiffusionMap(),
        ConformalMap(),
        DiffeomorphismMap(),
        NonlinearICA(),
        PaperIteratedDiffusionMap(2, n_components=8),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def ring():
    X, y, _ = feature_example("annulus radius", 700, random_state=0)
    return X[:500], y[:500, 0], X[500:], y[500:, 0]


@pytest.fixture(scope="module")
def fitted(ring):
    return IteratedDiffusionMap(random_state=0).fit(*ring[:2])


@pytest.mark.parametrize("name", EXAMPLES)
def test_recall_prediction_and_extension(name):
    # the level sets are connected: neighbours are as right as the prediction, which has R2 of .9999 and more
    X, y, _ = feature_example(name, 1500, random_state=1)
    model = IteratedDiffusionMap(random_state=0).fit(X[:1000], y[:1000])
    new, score = model.transform(X[1000:]), model.score(X[1000:], y[1000:])
    predicted = model.predict(X[1000:]).reshape(500, -1)
    by_value = neighbor_recall(y[:1000], y[:1000], predicted, y[1000:])
    recall = neighbor_recall(model.embedding_, y[:1000], new, y[1000:])
    assert score > 0.9999 and recall > 0.98 and recall > by_value - 0.01
    assert model.branches_.n_branches == 1
    assert np.array_equal(model.transform(X[:1000]), model.embedding_)


def test_both_ways_to_an_outcome_are_kept_apart():
    X, y, _ = feature_example("torus x", 1300, random_state=0)
    model = IteratedDiffusionMap(random_state=0).fit(X[:1000], y[:1000])
    side, new = np.sign(X[:, 1]), 1000 + np.flatnonzero(np.abs(X[1000:, 0]) < 0.7)
    near = model.kneighbors(X[new], 20)[1]
    assert np.mean(side[near] == side[new, None]) > 0.99
    assert np.abs(y[near] - y[new, None]).max() < 0.3  # 20 of 1000 rows, half of them on this side
    apart = model.assign(X[new])
    assert all(np.unique(apart[side[new] == s]).size == 1 for s in (-1, 1))
    assert len(np.unique(apart)) == 2


@pytest.mark.parametrize("flow", ["closed", "diffusion", DiffusionFlow(time_factor=2.0)])
def test_every_flow_is_saved_whole(ring, flow, tmp_path):
    X, y, new, _ = (part[:200] for part in ring)
    model = IteratedDiffusionMap(2, flow=flow, regressor="ridge", random_state=0).fit(X, y)
    model.save(tmp_path / "m.npz")
    again = idm_nb.load(tmp_path / "m.npz")
    for rows in (X, new):
        assert np.array_equal(again.transform(rows), model.transform(rows))
    refuses("not a DiffusionMap", lambda: DiffusionMap.load(tmp_path / "m.npz"))


def test_a_diffusion_map_in_each_step(ring):
    X, y, new, truth = ring
    options = dict(tau=0.8, regressor="kernel", random_state=0)
    model = IteratedDiffusionMap(3, flow="diffusion", **options).fit(X, y)
    assert np.array_equal(model.transform(X), model.embedding_) and len(model.flow_.steps) == 3
    closed = IteratedDiffusionMap(3, **options).fit(X, y)
    before = neighbor_recall(X, y[:, None], new, truth[:, None])
    for fitted in (model, closed):
        after = fitted.embedding_, y[:, None], fitted.transform(new), truth[:, None]
        assert neighbor_recall(*after) > before
    # the estimate does not depend on the flow
    assert np.array_equal(model.predict(new), closed.predict(new))


@pytest.mark.parametrize("options", [{}, dict(tuning="scaling laws", corrections="all")])
def test_the_algorithm_of_the_paper(ring, options, tmp_path):
    X, y, new, truth = (part[:150] for part in ring)
    X, y = np.vstack([X, X[:3]]), np.r_[y, y[:3]]  # rows that coincide
    model = PaperIteratedDiffusionMap(
        2, n_neighbors=40, n_components=20, random_state=0, **options
    ).fit(X, np.c_[y, y**2])
    assert [cloud.shape for cloud in model.embeddings_] == [(153, 2), (153, 20), (153, 20)]
    assert [step.derivatives.shape for step in model.steps_] == [(150, 2, 2), (150, 20, 2)]
    assert len(model.steps_) == 2 and model.steps_[0].dimension.shape == (150,)
    assert all(abs(step.xi[0] - 1) < 1e-9 and len(step.xi) == 21 for step in model.steps_)
    assert np.array_equal(model.transform(X), model.embedding_)
    assert np.array_equal(model.embedding_[:3], model.embedding_[150:])
    assert model.predict(new).shape == (150, 2) and np.isfinite(model.transform(1e3 + new)).all()
    model.save(tmp_path / "m.npz")
    assert np.array_equal(idm_nb.load(tmp_path / "m.npz").predict(new), model.predict(new))


def test_the_paper_counts_neighbours_and_components_that_there_are():
    X, y, _ = feature_example("sphere x", 30, random_state=0)
    model = PaperIteratedDiffusionMap("auto", random_state=0).fit(X, y)
    assert model.embedding_.shape == (30, 29) and len(model.residuals_) == model.n_iterations_ + 1


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_every_method_under_another_output(ring, kind):
    pytest.importorskip(kind)
    X, y, new, _ = (part[:200] for part in ring)
    plain = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X, y)
    with sklearn.config_context(transform_output=kind):
        model = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X, y)
        moved = model.transform(new)
        assert list(moved.columns) == list(model.get_feature_names_out())
        assert np.array_equal(np.asarray(moved), plain.transform(new))
        assert list(model.fit_transform(X, y).columns) == list(moved.columns)
        for a, b in zip(model.predict(new, return_std=True), plain.predict(new, return_std=True)):
            assert np.array_equal(a, b)
        for name in ("predict", "assign", "assign_proba", "is_novel"):
            assert np.array_equal(getattr(model, name)(new), getattr(plain, name)(new))
        for a, b in zip(model.kneighbors(new, 3), plain.kneighbors(new, 3)):
            assert np.array_equal(a, b)
        assert model.score(new, y) == plain.score(new, y)
        pair = DiffeomorphismMap().fit(X, X[:, ::-1])
        assert pair.predict(new).shape == (200, 2) and len(pair.transform(new).columns)
        assert type(pair.inverse_predict(new)) is np.ndarray
        assert len(DiffusionMap(2).fit(X).transform(new).columns) == 2
        paper = PaperIteratedDiffusionMap(1, n_components=5).fit(X, y)
        assert len(paper.transform(new).columns) == 5 and paper.predict(new).shape == (200,)


def test_names_and_width_of_the_output():
    X, y, _ = feature_example("torus x", 900, random_state=0)
    fast = dict(regressor="kernel", random_state=0)
    model = IteratedDiffusionMap(**fast).fit(X, y)
    names = model.get_feature_names_out()
    assert names[0] == "feature0" and names[1] == "branch0" and names[-1] == "axis2"
    assert np.allclose(np.corrcoef(model.embedding_[:, 0], y[:, 0])[0, 1], 1)
    with pytest.warns(UserWarning, match="n_components=2 is too few for 4 branches"):
        short = IteratedDiffusionMap(n_components=2, **fast).fit(X, y)
    assert np.array_equal(short.embedding_, model.embedding_[:, :2])
    for steps in (short.transform_all(X[:9]), short.embeddings_):
        assert all(step.shape[1] == 2 for step in steps[1:])
    assert np.array_equal(short.transform_all(X + 0.01)[-1], short.transform(X + 0.01))


def test_rotation_shift_scale_and_order_do_not_matter(fitted, ring):
    X, y, new, truth = ring
    recall = lambda m, a, b: neighbor_recall(
        m.embedding_, a[:, None], m.transform(b), truth[:, None]
    )
    base = recall(fitted, y, new)
    c, s = np.cos(0.7), np.sin(0.7)
    turn = lambda points: 40 * (points @ np.array([[c, s], [-s, c]])) - 1000
    order = np.random.default_rng(0).permutation(len(X))
    turned, permuted = (turn(X), y, turn(new), 40), (X[order], y[order], new, 1)
    for rows, values, moved, unit in (turned, permuted):
        model = IteratedDiffusionMap(random_state=0).fit(rows, unit * values)
        # tenths of a neighbour: the draws of rows for the tuning differ
        assert abs(recall(model, values, moved) - base) < 0.01


def test_pipeline_and_grid_search(ring):
    X, y, new, truth = ring[0][:300], ring[1][:300], *ring[2:]
    model = IteratedDiffusionMap(1, regressor="kernel", random_state=0)
    pipe = make_pipeline(StandardScaler(), model).fit(X, y)
    assert pipe.score(new, truth) > 0.97
    search = GridSearchCV(model, {"log_odds": [1.6, 3.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.97


def test_embeddings_start_with_the_data(fitted, ring):
    assert np.array_equal(fitted.embeddings_[0], ring[0])
    steps = len(fitted.diagnostics_["iteration"])
    assert len(fitted.embeddings_) == fitted.n_iterations_ + 1 == steps
    assert np.array_equal(fitted.embeddings_[-1], fitted.embedding_)
    stages = fitted.transform_all(ring[2])
    assert [s.shape[1] for s in stages] == [e.shape[1] for e in fitted.embeddings_]


@pytest.mark.parametrize("digit", [2, 5, 7])
def test_a_digit_that_is_hardly_turned_is_hardly_changed(digit):
    X, _, groups = rotated_digits(digit, n_angles=4, max_angle=1e-6, random_state=0)
    assert np.abs(X - X[np.unique(groups, return_index=True)[1]][groups]).max() < 1e-5


def test_groups_are_left_out_together():
    X, angle, groups = rotated_digits(n_angles=4)
    new = groups % 4 == 0
    model = IteratedDiffusionMap(2, regressor="kernel", random_state=0)
    model.fit(X[~new], angle[~new], groups=groups[~new])
    assert model.score(X[new], angle[new]) > 0.98
    # with the groups the error at training rows is honest: it is that of new originals
    honest = np.sqrt(np.mean(model.residuals_**2))
    held_out = np.sqrt(np.mean((model.predict(X[new]) - angle[new]) ** 2))
    assert 0.6 < honest / held_out < 1.6
    assert np.array_equal(model.transform(X[~new]), model.embedding_)


@pytest.mark.parametrize(
    "regressor", ["local", "kernel", "lengths", KNeighborsRegressor(5)], ids=str
)
def test_regressors_extend_exactly_and_predict(regressor, tmp_path):
    covered = []
    for seed in range(2):
        X, y, _ = feature_example("torus phi", 650, random_state=seed)
        model = IteratedDiffusionMap(regressor=regressor, random_state=0).fit(X[:450], y[:450])
        assert np.array_equal(model.transform(X[:450]), model.embedding_)
        assert model.score(X[450:], y[450:]) > 0.98
        found, error = model.predict(X[450:], return_std=True)
        assert found.shape == error.shape == y[450:].shape
        covered.append(np.mean(np.abs(found - y[450:]) < 1.96 * error))
    # conformal: 95 % lie within 1.96 standard errors; without noise errors are smooth, not independent: the share
    # of one draw scatters by .025 and not by .011, as it would for 400 independent values
    assert 0.9 < np.mean(covered) <= 1
    if isinstance(regressor, KNeighborsRegressor):  # of another package: it was cloned
        assert not hasattr(regressor, "n_features_in_")
        refuses(
            "cannot be saved without pickle", lambda: model.save(tmp_path / "model.npz"), TypeError
        )


def test_collapsed_points_get_finite_coordinates():
    # with so few neighbours the last embeddings are clumps narrower than rounding
    X, y, _ = feature_example("torus x", 500, random_state=0)
    flow = DiffusionFlow(n_bandwidth_neighbors=2, n_components=20)
    model = IteratedDiffusionMap(8, flow=flow, regressor="kernel", random_state=0).fit(
        X[:400], y[:400]
    )
    assert all(np.isfinite(Z).all() for Z in model.transform_all(X[400:]))


def test_kneighbors_are_alike_and_leave_out_the_row_itself(fitted, ring):
    X, y, new, truth = ring
    distance, index = fitted.kneighbors(new, 7)
    assert distance.shape == index.shape == (200, 7) and (np.diff(distance, axis=1) >= 0).all()
    assert np.abs(y[index] - truth[:, None]).max() < 0.1  # 7 of 500 rows within 2 units
    own = fitted.kneighbors(n_neighbors=3)[1]
    assert not (own == np.arange(500)[:, None]).any()
    refuses("1 or more and at most 500, got 501", lambda: fitted.kneighbors(new, 501))


def test_rows_far_away_are_novel(fitted, ring):
    X, _, new, _ = ring
    far = 2.5 * X[np.abs(X).max(axis=1) > 2.5]
    assert fitted.is_novel(new).mean() < 0.05 and fitted.is_novel(far).all()
    assert np.isfinite(fitted.transform([[1e3, -1e3], [0.0, 0.0]])).all()
    error = fitted.predict(np.vstack([new, 5 * new]), return_std=True)[1]
    assert np.median(error[200:]) > 10 * np.median(error[:200])  # and their errors are not small


def test_a_shuffled_feature_is_called_chance():
    X, y, _ = feature_example("annulus radius", 1000, random_state=0)
    X, y = X[:400], y[:400, 0]
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(y)
        with pytest.warns(UserWarning, match="better than by chance"):
            model = IteratedDiffusionMap(random_state=0).fit(X, shuffled)
        assert not model.verdict_.beats_chance and model.branches_.n_branches == 1


def test_schedule_of_tau():
    X, y, _ = feature_example("annulus radius", 400, random_state=0)
    model = IteratedDiffusionMap(3, tau=[0.5, 0.9], regressor="kernel", random_state=0).fit(X, y)
    assert model.diagnostics_["tau"].tolist() == [0.5, 0.9, 0.9]
    assert np.allclose(model.diagnostics_["remainder"], [1, 0.5, 0.05, 0.005])


def mushroom(x):
    return np.stack([x[..., 0] + x[..., 1] ** 3, x[..., 1] - x[..., 0] ** 3], -1)


@pytest.fixture(scope="module")
def hidden():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(1200, 2))
    bursts = mushroom(x[:, None] + 0.1 * rng.normal(size=(1200, 100, 2)))
    return x, mushroom(x), covariances_from_bursts(bursts, dt=0.01)


def test_nonlinear_ica_does_not_depend_on_the_map(hidden):
    # an affine change of the observations changes neither the hidden lengths nor, up to rounding, anything else
    x, y, C = hidden
    A = np.array([[3.0, 1.0], [-2.0, 40.0]])
    first = NonlinearICA(random_state=0).fit(y, covariances=C)
    second = NonlinearICA(random_state=0).fit(y @ A.T + 1e3, covariances=A @ C @ A.T)
    # the rounding of the inverse covariances, whose condition the change makes worse by some hundreds
    assert np.isclose(first.epsilon_, second.epsilon_, rtol=1e-5)
    # the same, through an eigensolver
    assert np.allclose(
        first.embedding_, second.embedding_, atol=1e-5 * np.abs(first.embedding_).max()
    )


def test_nonlinear_ica_without_covariances_is_the_diffusion_map(hidden):
    _, y, _ = hidden
    options = dict(epsilon=0.01, keep_self=True, random_state=0)
    model = NonlinearICA(**options).fit(y)
    plain = DiffusionMap(20, n_neighbors=len(y) - 1, **options).fit(y)
    # the only difference are weights below 1e-4 that one of the two leaves out
    assert np.allclose(
        model.laplacian_eigenvalues_[1:10], plain.laplacian_eigenvalues_[1:10], rtol=0.01
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [4, 6, 16, 20, 39, 40, 60])
def test_a_verdict_of_few_rows_has_no_gaps(n):
    X, y, _ = feature_example("annulus radius", 60, random_state=0)
    verdict = IteratedDiffusionMap(random_state=0).fit(X[:n], y[:n]).verdict_
    assert "nan" not in str(verdict) and (verdict.nearest is None) == (n < 40)


def test_noisy_rows_are_placed_by_their_estimate_and_exact_ones_by_their_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    clean = X[:, 0] + X[:, 1] ** 2
    for noise, low, high in ((0, 0.9, 1), (0.5, 0, 0.3)):
        y = clean + noise * rng.normal(size=300)
        fitted = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X, y).map_
        assert low <= fitted.trust <= high


def troubled(kind):
    "A table with one problem, and its feature; the chapter on the verdict has one of each kind."
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    y = pd.Series(np.sin(2 * X.a) + X.b + 0.1 * rng.normal(size=300), name="yield")
    if kind == "sum":
        X["e"] = y - X.c
    if kind == "codes":
        X.loc[::9, list("bc")] = -200.0
    if kind == "spectra":
        heights = np.exp(rng.normal(size=(300, 2)))
        X = heights @ np.exp(-((np.arange(60) - np.array([[10], [45]])) ** 2) / 20)
        y = pd.Series(heights[:, 1] + 0.01 * rng.normal(size=300), name="yield")
    return X, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind, sentence",
    [
        ("none", "On rows not used for fitting, the map explains 9"),
        (
            "sum",
            "The feature yield can be computed from 'e' and 'c', exactly or nearly: leave them out",
        ),
        ("codes", "The value -200 occurs 68 times in 'b' and 1 more column, far from all others"),
        ("spectra", "On rows not used for fitting, the map explains "),  # and no other scale
    ],
)
def test_the_verdict_begins_with_what_is_wrong_in_the_table(kind, sentence):
    X, y = troubled(kind)
    fast = FeatureRegressor(["ridge", "kernel"], random_state=0)
    model = IteratedDiffusionMap(regressor=fast, random_state=0).fit(X, y)
    assert str(model.verdict_).startswith(sentence)


@pytest.mark.parametrize("stop", [0.5, 1.0])
def test_the_flow_stops_when_what_is_left_of_the_data_is_below_the_error(stop):
    X, y, _ = feature_example("annulus radius", 300, random_state=0)
    y = y[:, 0] + 0.3 * np.random.default_rng(0).normal(size=300)
    model = IteratedDiffusionMap(tau=0.5, stop=stop, regressor="kernel", random_state=0).fit(X, y)
    steps, error = model.n_iterations_, np.median(np.abs(model.residuals_)) * model.feature_scale_
    before, after = (0.5 ** (n / 2) * np.sqrt(X.var(axis=0).sum()) for n in (steps - 1, steps))
    assert 1 < steps < 12 and after <= stop * error < before


def hulls(rng):
    "Eight hulls of three columns at thirty speeds, and their resistance."
    hull, speed = np.indices((8, 30)).reshape(2, -1)
    shape = rng.normal(size=(8, 3))
    drag = np.exp(speed / 6 + 0.1 * shape[hull, 0]) * (1 + 0.03 * rng.normal(size=240))
    return np.c_[shape[hull], speed / 30], drag


@pytest.mark.parametrize("seed", range(3))
def test_hulls_that_follow_one_relation_are_near_in_the_map(seed):
    X, y = hulls(rng := np.random.default_rng(seed))
    new = rng.uniform(size=len(y)) < 0.3
    model = IteratedDiffusionMap(random_state=0).fit(X[~new], y[~new])
    assert model.branches_.n_pieces > 1  # of few rows
    missed = []
    for columns in (1, None):
        known, places = model.embedding_[:, :columns], model.transform(X[new])[:, :columns]
        near = nearest(known, places, 10)[0]
        missed.append(np.mean((y[~new][near].mean(axis=1) - y[new]) ** 2))
    assert missed[1] < 1.2 * missed[0]


def test_strips_that_are_dense_stay_apart():
    rng = np.random.default_rng(0)
    side, height = rng.integers(0, 2, 600), rng.uniform(size=600)
    X = np.c_[height, rng.uniform(size=600) / 2 + side]
    model = IteratedDiffusionMap(random_state=0).fit(X[:500], height[:500])
    assert np.all(side[model.kneighbors(X[500:])[1]] == side[500:, None])
