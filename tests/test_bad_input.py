"""Bad input is answered by an error that names the argument, its value and what would be right."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from book import refuses

from idm_nb import (
    ConformalMap,
    DiffeomorphismMap,
    DiffusionFlow,
    DiffusionMap,
    FeatureRegressor,
    IteratedDiffusionMap,
    NonlinearICA,
    PaperIteratedDiffusionMap,
    reeb_graph,
    save_explorer,
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


def test_rows_without_a_feature_are_placed_as_new_ones():
    part = np.arange(300) % 3 == 0
    model = IteratedDiffusionMap(regressor="kernel", random_state=0)
    model.fit(X, np.where(part, np.nan, Y))
    assert np.isnan(model.residuals_[part]).all() and np.isfinite(model.residuals_[~part]).all()
    assert np.array_equal(model.transform(X), model.embedding_)
    near = model.kneighbors(X[part], 10)[1]
    assert np.abs(Y[near] - Y[part, None]).max() < 0.5 * np.ptp(Y)


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


def test_pieces_of_the_data_are_branches_not_a_defect():
    apart, fast = np.vstack([X, X + 100]), dict(regressor="kernel", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IteratedDiffusionMap(**fast).fit(apart, np.r_[Y, Y])
    assert len(np.unique(model.branch_)) == 2 and len(np.unique(model.branch_[:300])) == 1
    model = IteratedDiffusionMap(2, flow=DiffusionFlow(), **fast).fit(apart, np.r_[Y, Y])
    assert np.isfinite(model.embedding_).all() and (model.flow_.diagnostics["pieces"] == 2).all()


EYES = np.tile(np.eye(2), (300, 1, 1))
flow_map = lambda **options: IteratedDiffusionMap(2, flow=DiffusionFlow(**options))
REFUSED = [  # values of a wrong kind are refused in test_promises.py
    (IteratedDiffusionMap(tau=1.0), "tau must lie between 0 and 1, got 1.0"),
    (IteratedDiffusionMap(tau=[0.9, 2.0]), "tau must lie between 0 and 1, got"),
    (IteratedDiffusionMap(stop=0), "stop must be a number, above 0, got 0"),
    (IteratedDiffusionMap(n_iterations=0), "n_iterations must be an integer, 1 or more, got 0"),
    (IteratedDiffusionMap(n_iterations=2.5), "n_iterations must be an integer"),
    (IteratedDiffusionMap(n_components=0), "n_components must be an integer, 1 or more"),
    (flow_map(time_factor=-1), "time_factor must be a number, above 0"),
    (flow_map(n_bandwidth_neighbors=0), "n_bandwidth_neighbors must be an integer, 1 or more"),
    (flow_map(n_components=0), "n_components must be an integer, 1 or more, got 0"),
    (PaperIteratedDiffusionMap(tau=0), "tau must lie between 0 and 1, got 0"),
    (PaperIteratedDiffusionMap(n_neighbors=2), "n_neighbors must be an integer, 3 or more, got 2"),
    (PaperIteratedDiffusionMap(n_iterations=0), "n_iterations must be an integer, 1 or more"),
    (PaperIteratedDiffusionMap(tuning="d2"), "tuning='d2' is not known"),
    (PaperIteratedDiffusionMap(corrections="rate"), "corrections='rate' is not known"),
    (PaperIteratedDiffusionMap(corrections=("rates", "log")), "corrections='log' is not known"),
    (DiffusionMap(n_components=0), "n_components must be an integer, 1 or more, got 0"),
    (DiffusionMap(alpha=2), "alpha must be a number, 0 or more and at most 1, got 2"),
    (DiffusionMap(dimension=0), "dimension must be a number, above 0"),
    (
        DiffusionMap(n_neighbors=300),
        "n_neighbors must be an integer, 1 or more and at most 299, got 300",
    ),
    (NonlinearICA(300), "n_components must be an integer, 1 or more and at most 299, got 300"),
    (NonlinearICA(rank=3), "rank must be an integer, 1 or more and at most 2, got 3"),
    (NonlinearICA(epsilon=0), "epsilon must be a number, above 0, got 0"),
    (NonlinearICA(n_eigenfunctions=1), "n_eigenfunctions must be an integer, 2 or more"),
    (ConformalMap(n_effective=0), "n_effective must be a number, 1 or more"),
    (ConformalMap(n_components=0), "n_components must be an integer, 1 or more"),
    (DiffeomorphismMap(n_components=0), "n_components must be an integer, 1 or more"),
    (DiffeomorphismMap(n_neighbors=900), "n_neighbors=900 needs at least 901 points, got 300"),
]


@pytest.mark.parametrize("model, words", REFUSED)
def test_bad_arguments(model, words):
    given = dict(covariances=EYES) if isinstance(model, NonlinearICA) else {}
    refuses(words, lambda: model.fit(X, Y, **given), (ValueError, TypeError))


HOLE = np.where(np.arange(600).reshape(300, 2) == 35, np.nan, X)
TRIPLE = np.repeat(X[:3], 20, axis=0)
OF_FUNCTIONS = [
    (lambda: estimate_derivative(X, Y, method="guess"), "method='guess' is not known"),
    *(
        (lambda m=model: m.fit(X, Y, groups=np.arange(300) == 7), "largest holds 299 of 300 rows")
        for model in (IteratedDiffusionMap(), FeatureRegressor(["kernel"]))
    ),
    (lambda: estimate_derivative(X, Y, X[:3] + 0.1, method="regression"), "use 'affine'"),
    (lambda: estimate_derivative(X, Y[:-1]), "y has 299 rows"),
    (lambda: estimate_derivative(X, Y, ridge=np.nan), "ridge must be a number, 0 or more, got nan"),
    (lambda: estimate_derivative(X, Y, ridge=-1), "ridge must be a number, 0 or more, got -1"),
    (lambda: estimate_derivative(X, Y, dimension=3), "dimension must be an integer.* 2, got 3"),
    (
        lambda: estimate_derivative(X, Y, X[:3], query_features=np.ones((3, 2))),
        r"query_features has shape \(3, 2\), not \(3, 1\): the rows of queries",
    ),
    (
        lambda: estimate_derivative(X, X, X[:5], query_features=X[:5].T),
        r"query_features has shape \(\d, 5\), not \(5, ",
    ),
    (
        lambda: estimate_derivative(X, Y, X[:3], method="affine", epsilon=np.ones(4)),
        "epsilon must be a number or have one entry for each of the 3",
    ),
    (
        lambda: estimate_derivative(X, Y, np.ones((4, 3)), method="affine"),
        "queries has 3 columns but X has 2",
    ),
    (lambda: tune_local_bandwidth(X, rule="first"), "rule='first' is not known"),
    (lambda: tune_local_bandwidth(TRIPLE, n_neighbors=5), "neighbours of point 0 coincide with it"),
    (lambda: singular_value_scaling(HOLE, X[0], [1, 2]), "X contains NaN at row 17, column 1"),
    (lambda: singular_value_scaling(X, X[0, :1], [1, 2]), "point must have the 2 columns of X"),
    (lambda: dimension_curves(X, X[0], [2, 1]), "epsilons must be two or more increasing"),
    (lambda: tangent_spaces(X, dimension=1, epsilon=0.0), "epsilon must be a number, above 0"),
    (lambda: IteratedDiffusionMap().fit(X, np.full(300, np.nan)), "y is NaN in every row"),
    (
        lambda: reeb_graph(DiffusionMap(2).fit(X)),
        "model must be a fitted IteratedDiffusionMap, got DiffusionMap",
    ),
    (lambda: save_explorer(3, "x.html"), "model must be a fitted IteratedDiffusionMap, got int"),
]


@pytest.mark.parametrize("call, words", OF_FUNCTIONS, ids=[words for _, words in OF_FUNCTIONS])
def test_bad_arguments_of_functions(call, words):
    refuses(words, lambda: call(), (ValueError, TypeError))


def test_duplicates_do_not_disturb_the_local_rules():
    twice = np.vstack([X, X[:40]])
    for rule in ("max-slope", "agreement", "gap"):
        epsilon, dimension = tune_local_bandwidth(twice, rule=rule, n_neighbors=60)
        assert np.isfinite(epsilon).all() and (epsilon > 0).all() and np.isfinite(dimension).all()
        assert np.allclose(dimension[:40], dimension[300:])


def test_eigensolver_that_does_not_converge_is_an_error(monkeypatch):
    import idm_nb.diffusion.eigenpairs as module

    def gives_up(*args, **kwargs):
        raise module.ArpackNoConvergence("no", np.ones(3), np.ones((1100, 3)))

    monkeypatch.setattr(module, "eigsh", gives_up)
    points = feature_example("annulus radius", 1100, random_state=0)[0]
    with pytest.raises(RuntimeError, match="found only 3 of 6 eigenpairs.*fewer n_components"):
        DiffusionMap(5).fit(points)


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
    refuses(words, lambda: NonlinearICA().fit(X, covariances=covariances))


def test_bad_bursts_and_balls():
    refuses(r"bursts must have shape .* got \(300, 2\)", lambda: covariances_from_bursts(X, dt=0.1))
    bursts = np.zeros((4, 5, 2))
    refuses("dt must be a number, above 0, got 0", lambda: covariances_from_bursts(bursts, dt=0))
    with pytest.raises(ValueError, match=r"starts has shape \(3, 2\), but bursts has \(4, 5, 2\)"):
        drift_from_bursts(bursts, np.zeros((3, 2)), dt=0.1)
    bursts[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="bursts is not finite at point 1, sample 2, column 0"):
        covariances_from_bursts(bursts, dt=0.1)
    with pytest.raises(ValueError, match="holds 0 other point.*larger balls"):
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
    refuses("no weight relates row 1 of the new points", lambda: model.transform(rows))
    model = DiffusionMap(3, metric="kernel", epsilon=0.3).fit(np.exp(-(distances**2) / 0.6))
    refuses("no weight relates row 0 of the new points", lambda: model.transform(np.zeros((2, 60))))
