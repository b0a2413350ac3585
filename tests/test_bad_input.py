"""Bad input is answered by an error that names the argument, its value and what would be right."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from idm_nb import (
    DiffusionFlow,
    DiffusionMap,
    FeatureRegressor,
    IteratedDiffusionMap,
    NonlinearICA,
    PaperIteratedDiffusionMap,
    load,
)
from idm_nb.branches import Branches
from idm_nb.datasets import feature_example
from idm_nb.derivatives import (
    dimension_curves,
    estimate_derivative,
    singular_value_scaling,
    tangent_spaces,
    tune_local_bandwidth,
)
from idm_nb.relatives import covariances_from_balls, covariances_from_bursts, drift_from_bursts

X, Y, _ = feature_example("annulus radius", 300, random_state=0)
Y = Y[:, 0]


def spoiled(array, value, row=17, column=1):
    array = array.copy()
    array[(row, column) if array.ndim == 2 else row] = value
    return array


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
@pytest.mark.parametrize("estimator", [IteratedDiffusionMap(1), DiffusionMap(2), NonlinearICA(2)])
def test_non_finite_data_are_named_by_row_and_column(estimator, value, word):
    with pytest.raises(ValueError, match=f"X contains {word} at row 17, column 1"):
        estimator.fit(spoiled(X, value), Y)
    estimator.fit(X, Y)
    with pytest.raises(ValueError, match=f"X contains {word} at row 17, column 1"):
        estimator.transform(spoiled(X, value))


def test_column_names_appear_in_the_message():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"column 1 \('north'\)"):
        IteratedDiffusionMap().fit(
            pandas.DataFrame(spoiled(X, np.nan), columns=["east", "north"]), Y
        )


def test_non_finite_feature():
    with pytest.raises(ValueError, match="y contains NaN at row 17"):
        FeatureRegressor().fit(X, spoiled(Y, np.nan))
    with pytest.raises(ValueError, match="y contains inf at row 17"):
        IteratedDiffusionMap().fit(X, spoiled(Y, np.inf))
    with pytest.raises(ValueError, match="y is NaN in every row"):
        IteratedDiffusionMap().fit(X, np.full(300, np.nan))


def test_rows_without_a_feature_are_placed_as_new_ones():
    part = np.arange(300) % 3 == 0
    model = IteratedDiffusionMap(random_state=0).fit(X, np.where(part, np.nan, Y))
    assert np.isnan(model.residuals_[part]).all() and np.isfinite(model.residuals_[~part]).all()
    assert np.array_equal(model.transform(X), model.embedding_)
    near = model.kneighbors(X[part], 10)[1]
    assert np.abs(Y[near] - Y[part, None]).max() < 0.5 * np.ptp(Y)


def test_fewer_points_than_neighbours():
    with pytest.raises(ValueError, match="n_neighbors=50 needs at least 51 points, got 40"):
        DiffusionMap(2, n_neighbors=50).fit(X[:40])
    with pytest.raises(
        ValueError, match="n_neighbors must be an integer, 2 or more and at most 39, got 50"
    ):
        IteratedDiffusionMap(n_neighbors=50).fit(X[:40], Y[:40])


def test_mismatched_lengths():
    with pytest.raises(ValueError, match="y has 299 rows but X has 300"):
        IteratedDiffusionMap().fit(X, Y[:-1])
    with pytest.raises(
        ValueError, match="groups must hold one label for each of the 300 rows of X"
    ):
        IteratedDiffusionMap().fit(X, Y, groups=np.arange(10))
    with pytest.raises(ValueError, match="y has 299 rows"):
        estimate_derivative(X, Y[:-1])


def test_one_distinct_point():
    for estimator in (IteratedDiffusionMap(), DiffusionMap(2), NonlinearICA()):
        with pytest.raises(ValueError, match="all 300 rows of X are the same point"):
            estimator.fit(np.ones_like(X), Y)


def test_constant_feature():
    with pytest.raises(ValueError, match="y is constant in column 0"):
        IteratedDiffusionMap().fit(X, np.full(300, 4.0))
    with pytest.raises(ValueError, match="y is constant in column 1"):
        IteratedDiffusionMap().fit(X, np.c_[Y, np.ones(300)])


def test_duplicates_are_not_fatal():
    twice, feature = np.vstack([X, X[:150]]), np.r_[Y, Y[:150]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IteratedDiffusionMap(2, random_state=0).fit(twice, feature)
        other = DiffusionMap(4, random_state=0).fit(twice)
    assert np.isfinite(model.embedding_).all() and np.isfinite(other.eigenfunctions_).all()
    assert np.allclose(model.embedding_[:150], model.embedding_[300:], atol=1e-9)
    scale = np.abs(model.embedding_).max()
    assert np.abs(model.transform(twice) - model.embedding_).max() < 1e-8 * scale


def test_many_copies_of_few_points():
    few = np.repeat(X[:12], 25, axis=0)
    model = IteratedDiffusionMap(2, n_neighbors=60, random_state=0).fit(few, np.repeat(Y[:12], 25))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("columns", (1, 2, 3))
@pytest.mark.parametrize("digits", (0, 1))
def test_branches_of_rounded_columns(columns, digits):
    rng = np.random.default_rng(columns)
    rows = (rng.normal(scale=0.2, size=(900, columns)) + 4 * rng.integers(0, 3, (900, 1))).round(
        digits
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Branches(rows, rows[:, 0] + rows[:, -1] ** 2)
    assert len(found.membership) == 900 and np.isfinite(found.nodes).all()


@pytest.mark.parametrize("n", (2, 3, 5, 16, 17))
def test_branches_of_few_rows(n):
    found = Branches(X[:n], Y[:n])
    assert found.n_branches == 1 and len(found.nodes) == 2 and len(found.membership) == n


def test_wrong_number_of_columns():
    for estimator in (IteratedDiffusionMap(1), DiffusionMap(2), NonlinearICA()):
        estimator.fit(X, Y)
        with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 2"):
            estimator.transform(np.c_[X, X[:, :1]])


def test_graph_that_falls_apart_is_reported():
    apart = np.vstack([X, X + 100])
    with pytest.warns(
        UserWarning, match=r"falls into 2 pieces \(sizes 300, 300\).*n_neighbors=200"
    ):
        model = DiffusionMap(3, n_neighbors=100, random_state=0).fit(apart)
    assert model.n_connected_components_ == 2 and np.isfinite(model.eigenfunctions_).all()
    model = IteratedDiffusionMap(2, flow=DiffusionFlow(), random_state=0).fit(apart, np.r_[Y, Y])
    assert np.isfinite(model.embedding_).all() and (model.flow_.diagnostics["pieces"] == 2).all()


def test_pieces_of_the_data_are_branches_not_a_defect():
    apart = np.vstack([X, X + 100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IteratedDiffusionMap(random_state=0).fit(apart, np.r_[Y, Y])
    assert len(np.unique(model.branch_)) == 2 and len(np.unique(model.branch_[:300])) == 1


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(tau=1.0), ValueError, "tau must lie between 0 and 1, got 1.0"),
        (dict(tau="much"), TypeError, "tau must be a number, got 'much'"),
        (dict(flow="euclid"), ValueError, "flow='euclid' is not known; choose one of"),
        (dict(stop=0), ValueError, "stop must be a number, above 0, got 0"),
        (dict(placed_by="magic"), ValueError, "placed_by='magic' is not known"),
        (dict(odds=0.5), ValueError, "odds must be a number, 1 or more, got 0.5"),
        (dict(n_iterations=0), ValueError, "n_iterations must be an integer, 1 or more, got 0"),
        (dict(n_iterations=2.5), TypeError, "n_iterations must be an integer"),
        (
            dict(n_neighbors=1),
            ValueError,
            "n_neighbors must be an integer, 2 or more and at most 299, got 1",
        ),
        (dict(n_components=0), ValueError, "n_components must be an integer, 1 or more"),
        (dict(tau=[]), ValueError, "tau must be a number or a sequence of numbers"),
        (dict(tau=[0.9, 2.0]), ValueError, "tau must"),
        (dict(regressor="magic"), ValueError, "regressor='magic' is not known"),
        (dict(regressor=3), ValueError, "or a scikit-learn regressor, got 3"),
    ],
)
def test_bad_arguments_of_the_iterated_map(arguments, error, words):
    with pytest.raises(error, match=words):
        IteratedDiffusionMap(**arguments).fit(X, Y)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(time_factor=-1), "time_factor must be a number, above 0"),
        (dict(unit=0), "unit must be a number, above 0"),
        (
            dict(n_bandwidth_neighbors=0),
            "n_bandwidth_neighbors must be an integer, 1 or more, got 0",
        ),
        (dict(n_components=0), "n_components must be an integer, 1 or more, got 0"),
    ],
)
def test_bad_arguments_of_the_diffusion_flow(arguments, words):
    with pytest.raises(ValueError, match=words):
        IteratedDiffusionMap(2, regressor="ridge", flow=DiffusionFlow(**arguments)).fit(X, Y)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(tau=0), "tau must lie between 0 and 1, got 0"),
        (dict(n_neighbors=2), "n_neighbors must be an integer, 3 or more, got 2"),
        (dict(n_iterations=0), "n_iterations must be an integer, 1 or more, got 0"),
        (dict(tuning="d2"), "tuning='d2' is not known"),
        (dict(corrections="rate"), "corrections='rate' is not known"),
        (dict(corrections=("rates", "log")), "corrections='log' is not known"),
    ],
)
def test_bad_arguments_of_the_paper(arguments, words):
    with pytest.raises(ValueError, match=words):
        PaperIteratedDiffusionMap(**arguments).fit(X, Y)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(n_components=0), "n_components must be an integer, 1 or more, got 0"),
        (dict(alpha=2), "alpha must be a number, 0 or more and at most 1, got 2"),
        (dict(epsilon=-1.0), "epsilon must be a number, above 0, got -1.0"),
        (dict(epsilon="best"), "epsilon='best' is not known"),
        (dict(dimension=0), "dimension must be a number, above 0"),
    ],
)
def test_bad_arguments_of_the_diffusion_map(arguments, words):
    with pytest.raises(ValueError, match=words):
        DiffusionMap(**arguments).fit(X)


def test_bad_arguments_of_functions():
    with pytest.raises(ValueError, match="method='guess' is not known"):
        estimate_derivative(X, Y, method="guess")
    with pytest.raises(ValueError, match="use 'affine'"):
        estimate_derivative(X, Y, X[:3] + 0.1, method="regression")
    with pytest.raises(ValueError, match="rule='first' is not known"):
        tune_local_bandwidth(X, rule="first")
    with pytest.raises(ValueError, match="X contains NaN at row 17, column 1"):
        singular_value_scaling(spoiled(X, np.nan), X[0], [0.1, 0.2])
    with pytest.raises(ValueError, match="neighbours of point 0 coincide with it"):
        tune_local_bandwidth(np.repeat(X[:3], 20, axis=0), n_neighbors=5)
    with pytest.raises(ValueError, match="query_features has 2 columns but y has 1"):
        estimate_derivative(X, Y, X[:3], query_features=np.ones((3, 2)))
    with pytest.raises(
        ValueError, match="epsilon must be a number or have one entry for each of the 3"
    ):
        estimate_derivative(X, Y, X[:3], method="affine", epsilon=np.ones(4))
    with pytest.raises(
        ValueError, match="dimension must be an integer, 1 or more and at most 2, got 3"
    ):
        estimate_derivative(X, Y, dimension=3)
    with pytest.raises(ValueError, match="queries has 3 columns but X has 2"):
        estimate_derivative(X, Y, np.ones((4, 3)), method="affine")
    with pytest.raises(ValueError, match="point must have the 2 columns of X"):
        singular_value_scaling(X, X[0, :1], [0.1, 0.2])
    with pytest.raises(ValueError, match="epsilons must be two or more increasing"):
        dimension_curves(X, X[0], [0.2, 0.1])
    with pytest.raises(ValueError, match="epsilon must be a number, above 0, got 0.0"):
        tangent_spaces(X, dimension=1, epsilon=0.0)


def test_duplicates_do_not_disturb_the_local_rules():
    twice = np.vstack([X, X[:40]])
    for rule in ("max-slope", "agreement", "gap"):
        epsilon, dimension = tune_local_bandwidth(twice, rule=rule, n_neighbors=60)
        assert np.isfinite(epsilon).all() and (epsilon > 0).all() and np.isfinite(dimension).all()
        assert np.allclose(dimension[:40], dimension[300:])


def test_eigensolver_that_does_not_converge_is_an_error(monkeypatch):
    import idm_nb.diffusion.numerics as module

    def gives_up(*args, **kwargs):
        raise module.ArpackNoConvergence("no", np.ones(3), np.ones((1000, 3)))

    monkeypatch.setattr(module, "eigsh", gives_up)
    points = feature_example("annulus radius", 1000, random_state=0)[0]
    with pytest.raises(RuntimeError, match="found only 3 of 6 eigenpairs.*fewer n_components"):
        DiffusionMap(5).fit(points)


def test_model_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz")
    model = IteratedDiffusionMap(1, random_state=0).fit(X, Y)
    model.save(tmp_path / "m.npz")
    whole = (tmp_path / "m.npz").read_bytes()
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    for name, content in (("cut.npz", whole[:-500]), ("junk.npz", b"junk"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
    for name in ("cut.npz", "junk.npz", "empty.npz", "foreign.npz"):
        with pytest.raises(ValueError, match="is not a model saved by idm_nb, or it is damaged"):
            load(tmp_path / name)
    np.savez(
        tmp_path / "evil.npz",
        header=np.array(
            '{"format": "idm_nb model", "version": 2, "model": {"object": "subprocess.Popen", "state": {}}}'
        ),
    )
    with pytest.raises(ValueError, match="is not a model saved by idm_nb"):
        load(tmp_path / "evil.npz")


EYES = np.tile(np.eye(2), (300, 1, 1))


@pytest.mark.parametrize(
    "covariances, words",
    [
        (
            EYES[:-1],
            r"covariances must have shape \(300, 2, 2\), one matrix a row of X, got \(299, 2, 2\)",
        ),
        (EYES[0], r"got \(2, 2\)"),
        (
            np.where(np.arange(300)[:, None, None] == 17, np.nan, EYES),
            "covariance of point 17 is not finite",
        ),
        (
            np.where(np.arange(300)[:, None, None] == 17, 0, EYES),
            "point 17 is not finite or has no positive trace",
        ),
        (EYES + [[0, 0.1], [0, 0]], "covariance of point 0 is not symmetric"),
        (EYES * [[1, 0], [0, 0]], "covariance of point 0 has rank 1, below 2: pass rank="),
    ],
)
def test_bad_covariances(covariances, words):
    with pytest.raises(ValueError, match=words):
        NonlinearICA().fit(X, covariances=covariances)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            dict(n_components=300),
            "n_components must be an integer, 1 or more and at most 299, got 300",
        ),
        (dict(rank=3), "rank must be an integer, 1 or more and at most 2, got 3"),
        (dict(epsilon=0), "epsilon must be a number, above 0, got 0"),
        (dict(epsilon="best"), "epsilon='best' is not known"),
        (dict(alpha=-1), "alpha must be a number, 0 or more and at most 1"),
        (dict(n_eigenfunctions=1), "n_eigenfunctions must be an integer, 2 or more"),
    ],
)
def test_bad_arguments_of_nonlinear_ica(arguments, words):
    with pytest.raises(ValueError, match=words):
        NonlinearICA(**arguments).fit(X, covariances=EYES)


def test_bad_bursts_and_balls():
    with pytest.raises(ValueError, match=r"bursts must have shape .* got \(300, 2\)"):
        covariances_from_bursts(X, dt=0.1)
    bursts = np.zeros((4, 5, 2))
    with pytest.raises(ValueError, match="dt must be a number, above 0, got 0"):
        covariances_from_bursts(bursts, dt=0)
    with pytest.raises(ValueError, match=r"starts has shape \(3, 2\), but bursts has \(4, 5, 2\)"):
        drift_from_bursts(bursts, np.zeros((3, 2)), dt=0.1)
    bursts[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="bursts is not finite at point 1, sample 2, column 0"):
        covariances_from_bursts(bursts, dt=0.1)
    with pytest.raises(ValueError, match="holds 0 other point.*larger radius"):
        covariances_from_balls(X, radius=1e-9, dimension=2)
    with pytest.raises(ValueError, match="members must be 300 by 300"):
        covariances_from_balls(X, radius=1, dimension=2, members=np.eye(4))


def test_hidden_pieces_are_reported_with_a_remedy():
    apart = np.vstack([X, X + 100])
    with pytest.warns(UserWarning, match="falls into 2 pieces .*Pass a larger epsilon than"):
        model = NonlinearICA(random_state=0).fit(apart, covariances=np.vstack([EYES, EYES]))
    assert model.n_connected_components_ == 2 and np.isfinite(model.embedding_).all()


def test_new_rows_that_nothing_relates_to_the_training_points():
    points = np.random.default_rng(0).normal(size=(60, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    rows = sp.csr_matrix(distances[:3] * [[1], [0], [1]])
    model = DiffusionMap(3, metric="precomputed", epsilon=0.3).fit(distances)
    with pytest.raises(ValueError, match="no weight relates row 1 of the new points"):
        model.transform(rows)
    model = DiffusionMap(3, metric="kernel", epsilon=0.3).fit(np.exp(-(distances**2) / 0.6))
    with pytest.raises(ValueError, match="no weight relates row 0 of the new points"):
        model.transform(np.zeros((2, 60)))
