"""Generators, the conformal map and diffeomorphisms: properties that hold exactly, and bad input."""

import numpy as np
import pytest

from idm_nb import ConformalMap, DiffeomorphismMap
from idm_nb.datasets import Torus
from idm_nb.diffusion import linear_residual
from idm_nb.kernels import local_generator

rng = np.random.default_rng(0)
CLOUD = Torus().sample(700, random_state=0)


# ---- generators


def some_generator(**options):
    A = rng.normal(size=(3, 3))
    return local_generator(
        CLOUD.points, A @ A.T + np.eye(3), drift=[0.3, -0.2, 0.1], epsilon=0.05, **options
    )


@pytest.mark.parametrize("density", [None, "estimated", rng.uniform(0.5, 2, 700)])
def test_generator_kills_constants_and_adjoint_keeps_mass(density):
    generator, adjoint = some_generator(density=density)
    assert np.abs(generator @ np.ones(700)).max() < 1e-10  # rows of the chain sum to one
    if isinstance(density, str):
        return
    weight = np.ones(700) if density is None else 1 / density
    f = rng.normal(size=700)
    assert abs(weight @ (adjoint @ f)) < 1e-9 * np.abs(adjoint @ f).sum()
    h = rng.normal(size=700)  # adjoint in the inner product with the weights
    assert np.isclose((weight * h) @ (generator @ f), (weight * f) @ (adjoint @ h), rtol=1e-9)


def test_generator_off_the_diagonal_is_a_rate():
    generator, _ = some_generator()
    off = generator.copy()
    off.setdiag(0)
    assert off.min() >= 0 and generator.diagonal().max() <= 0


@pytest.mark.parametrize("shift, factor", [(5.0, 1.0), (0.0, 3.0)])
def test_generator_does_not_care_where_the_data_lie_and_how_large_they_are(shift, factor):
    X, A = CLOUD.points, np.diag([1.0, 2.0, 3.0])
    first, _ = local_generator(X, A, epsilon=0.05)
    moved, _ = local_generator(shift + factor * X, A / factor**2, epsilon=0.05)
    f = X[:, 0] * X[:, 1]
    # the graph has a sharp rim where the kernel is 1e-6; rounding may move edges across it
    assert np.allclose(first @ f, moved @ f, atol=1e-4 * np.abs(first @ f).max())


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(inverse_covariance=np.eye(2)), r"inverse_covariance must have shape \(700, 3, 3\)"),
        (dict(inverse_covariance=np.triu(np.ones((3, 3)))), "inverse_covariance must be symmetric"),
        (dict(inverse_covariance=np.full((3, 3), np.nan)), "inverse_covariance contains NaN"),
        (dict(drift=np.ones((5, 3))), r"drift must have shape \(700, 3\)"),
        (dict(drift=[1e6, 0, 0]), "pass a smaller epsilon than 0.05, or check the drift"),
        (dict(epsilon=0.0), "epsilon must be a number, above 0"),
        (dict(density=np.zeros(700)), "density must be 700 positive numbers"),
        (dict(density="guess"), "density='guess' is not known"),
        (dict(normalize="never"), "normalize='never' is not known"),
    ],
)
def test_bad_arguments_of_the_generator(arguments, words):
    with pytest.raises(ValueError, match=words):
        local_generator(
            CLOUD.points, **{"inverse_covariance": np.eye(3), "epsilon": 0.05, **arguments}
        )


# ---- the estimators


@pytest.mark.parametrize("keep_self", [True, False])
def test_conformal_map_is_invariant_under_moebius_maps(keep_self):
    center = np.array([1.0, 0.0, 3.0])
    step = CLOUD.points - center
    options = dict(n_components=4, keep_self=keep_self, random_state=0)
    inverted = step / np.sum(step**2, axis=1, keepdims=True)
    first = ConformalMap(**options).fit(CLOUD.points)
    for image in (inverted, 40 * CLOUD.points[:, ::-1] - 7):
        other = ConformalMap(**options).fit(image)
        # exact but for the pilot density, whose nearest neighbours are those of the image
        assert linear_residual(other.eigenfunctions_[:, 1:], first.eigenfunctions_[:, 1:]) < 0.03
        rates = other.laplacian_eigenvalues_, first.laplacian_eigenvalues_
        assert np.allclose(*rates, rtol=0.03, atol=1e-8)


def test_conformal_density_is_one():
    model = ConformalMap(3, keep_self=True, random_state=0).fit(Torus().grid((40, 40)).points)
    assert np.abs(model.density_ - 1).max() < 0.05  # what two rounds of estimating leave


def test_prediction_has_the_shape_of_y_and_score_is_r2():
    angle = np.sort(rng.uniform(0, 2 * np.pi, 400))
    X = np.c_[np.cos(angle), np.sin(angle), 0.2 * np.sin(3 * angle)]
    y = np.c_[np.cos(angle), 2 * np.sin(angle)]
    model = DiffeomorphismMap(10, random_state=0).fit(X[::2], y[::2])
    assert model.predict(X[1::2]).shape == (200, 2) and model.score(X[1::2], y[1::2]) > 0.999
    # the extension at a few hundred points; the range is 2
    assert np.abs(model.inverse_predict(y[1::2]) - X[1::2]).max() < 0.05
    line = DiffeomorphismMap(10, random_state=0).fit(angle[::2, None], angle[::2] ** 2)
    assert line.predict(angle[1::2, None]).shape == (200,)
    assert line.inverse_predict(angle[1::2] ** 2).shape == (200, 1)
