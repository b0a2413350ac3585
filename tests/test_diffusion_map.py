"""Defects known from other implementations of diffusion maps do not occur in this one."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from idm_nb import DiffusionMap
from idm_nb.datasets import Circle, Sphere, Torus, feature_example
from idm_nb.diffusion import KernelSum
from idm_nb.diffusion.operator import DiffusionOperator

# no repeated eigenvalues: signs are all that is free
RING = feature_example("annulus radius", 1300, random_state=0)[0]
POINTS, NEW = RING[:800], RING[800:1000]


# a dense eigensolver up to 1000 points, ARPACK above
@pytest.mark.parametrize("n_points", [500, 1300])
def test_five_fits_have_the_same_signs(n_points):
    # without a random_state each fit starts its eigensolver elsewhere
    fits = [DiffusionMap(6).fit(RING[:n_points]).eigenfunctions_ for _ in range(5)]
    for functions in fits[1:]:
        assert np.allclose(functions, fits[0], atol=1e-7)  # ARPACK's accuracy over the smallest gap


# a fifth of all pairs or more: dense; fewer: ARPACK
@pytest.mark.parametrize("n_points", [1700, 2100])
def test_many_eigenpairs_have_the_signs_of_few(n_points):
    points = feature_example("annulus radius", n_points, random_state=0)[0]
    many = DiffusionMap(405, random_state=0).fit(points)
    few = DiffusionMap(10, random_state=1).fit(points)
    # residual 1e-8
    assert np.allclose(many.eigenfunctions_[:, :11], few.eigenfunctions_, atol=1e-5)


def test_two_computations_from_one_object_agree():
    model = DiffusionMap(6, time=0.02, random_state=0)
    first = model.fit_transform(POINTS)
    coordinates, moved = model.coordinates(0.05), model.transform(NEW)
    distances = model.diffusion_distances([0, 5], 0.05)
    model.coordinates(0.5, "dimension-free"), model.extend(NEW[:3])
    assert np.array_equal(model.coordinates(0.05), coordinates)
    assert np.array_equal(model.transform(NEW), moved)
    assert np.array_equal(model.diffusion_distances([0, 5], 0.05), distances)
    # an object that was fitted to other data in between keeps nothing of them
    model.fit(NEW)
    assert np.array_equal(model.fit(POINTS).coordinates(0.05), coordinates)
    assert np.array_equal(model.fit_transform(POINTS), first)
    assert np.allclose(model.transform(POINTS), first, atol=1e-10)


def test_the_order_of_the_points_does_not_matter():
    order = np.random.default_rng(0).permutation(len(POINTS))
    first, other = (DiffusionMap(6, random_state=0).fit(x) for x in (POINTS, POINTS[order]))
    # the sign rule names a point by its place in the list, so only up to sign
    assert np.allclose(
        np.abs(first.eigenfunctions_[order]), np.abs(other.eigenfunctions_), atol=1e-7
    )


def test_pieces_are_reported_and_coordinates_are_finite():
    apart = np.vstack([POINTS[:300], POINTS[300:600] + 50, POINTS[600:700] - 50])
    with pytest.warns(
        UserWarning, match=r"falls into 3 pieces \(sizes 300, 300, 100\).*a larger epsilon than"
    ):
        model = DiffusionMap(5, n_neighbors=40, random_state=0).fit(apart)
    assert model.n_connected_components_ == 3
    assert np.allclose(model.markov_eigenvalues_[:3], 1, atol=1e-10)  # one for each piece
    for form in (True, False, "dimension-free"):
        assert np.isfinite(model.coordinates(0.01, form)).all()
    assert np.isfinite(model.transform(np.vstack([NEW, NEW + 25]))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DiffusionMap(5, random_state=0).fit(POINTS).n_connected_components_ == 1


def test_pieces_of_a_precomputed_kernel_are_reported():
    kernel = np.kron(np.eye(2), np.full((20, 20), 0.5)) + 0.5 * np.eye(40)
    with pytest.warns(UserWarning, match="falls into 2 pieces"):
        model = DiffusionMap(3, metric="kernel", epsilon=1.0, random_state=0).fit(kernel)
    assert np.isfinite(model.eigenfunctions_).all()


def test_gaussian_cloud_in_ten_dimensions_converges():
    X = np.random.default_rng(0).normal(size=(3000, 10))
    model = DiffusionMap(10, random_state=0).fit(X)
    operator, xi = model.diffusion_.operator, model.markov_eigenvalues_
    vectors = model.eigenfunctions_ * operator.scale[:, None]
    vectors /= np.linalg.norm(vectors, axis=0)
    assert np.abs(operator.symmetric @ vectors - vectors * xi).max() < 1e-8
    assert np.isclose(xi[0], 1, atol=1e-10) and np.all(np.diff(xi) <= 0)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("keep_self", [True, False])
def test_extension_divides_by_the_eigenvalue(alpha, keep_self):
    model = DiffusionMap(8, alpha=alpha, keep_self=keep_self, random_state=0).fit(POINTS)
    functions = model.eigenfunctions_
    assert np.abs(model.extend(POINTS) - functions).max() < 1e-10 * np.abs(functions).max()
    constant = model.extend(NEW)[:, 0]
    assert np.allclose(constant, functions[0, 0], rtol=1e-10)
    # forgetting the division would shrink the last function by its eigenvalue
    assert model.markov_eigenvalues_[8] < 1 - 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_many_directions_is_no_grid(seed):
    rng = np.random.default_rng(seed)
    points = np.hstack([Sphere().sample(1000, random_state=seed).points, np.zeros((1000, 27))])
    assert not KernelSum(points + 0.02 * rng.normal(size=points.shape)).keep_self


def test_grids_keep_the_diagonal_and_sixteen_neighbours():
    test = KernelSum(Torus().grid((30, 30)).points)
    assert test.keep_self and test.epsilon == test.plateau


@pytest.mark.parametrize("n_points, count", [(1000, 46.4), (4000, 117.0)])
def test_the_number_of_neighbours_grows(n_points, count):
    test = KernelSum(Circle().sample(n_points, random_state=0).points)
    found = np.interp(test.epsilon, test.epsilons, test.neighbors)
    assert abs(found / count - 1) < 0.05  # the estimated dimension is not exactly one


def test_the_kernel_of_many_points_fits_into_memory():
    test = KernelSum(Circle().sample(60_000, random_state=0).points)
    assert test.count_within(test.kernel.radius(test.epsilon)) * 60_000 < 2.1e7


def test_a_kernel_that_does_not_fit_is_an_error():
    points = np.random.default_rng(0).uniform(size=(60_000, 2))
    with pytest.raises(ValueError, match="pass a smaller epsilon"):
        DiffusionMap(2, epsilon=100.0).fit(points)
    rounded = DiffusionMap(2, epsilon=1.0).fit(np.round(points))  # four points, many times each
    assert rounded.eigenfunctions_.shape == (60_000, 3)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_points_that_stand_several_times_count_as_often(metric):
    points = Sphere().sample(500, random_state=0).points
    given = (lambda X: X) if metric == "euclidean" else lambda X: cdist(X, X)
    once = DiffusionMap(8, metric=metric, random_state=0).fit(given(points))
    for counts in (np.full(500, 2), np.random.default_rng(0).integers(1, 6, 500)):
        rows = np.random.default_rng(1).permutation(np.repeat(np.arange(500), counts))
        many = DiffusionMap(8, metric=metric, random_state=0).fit(given(points[rows]))
        assert not many.keep_self_ and many.n_connected_components_ == 1
        error = np.abs(many.laplacian_eigenvalues_[1:4] / -2 - 1).max()
        assert error < 0.15, error  # counts that differ are a density that is not smooth
        if counts.max() == 2:
            assert np.abs(many.laplacian_eigenvalues_ - once.laplacian_eigenvalues_).max() < 1e-8
            assert np.abs(many.density_ / once.density_[rows] - 1).max() < 1e-8
        mean = np.mean(many.eigenfunctions_**2 / many.density_[:, None], axis=0)
        assert np.abs(mean - 1).max() < 1e-8
        for asked in (Sphere().sample(20, random_state=2).points, points[rows[:20]]):
            place = many.extend(asked if metric == "euclidean" else cdist(asked, points[rows]))
            assert place.shape == (20, 9)
        assert np.array_equal(place, many.eigenfunctions_[:20])


def test_an_uneven_circle_converges():
    points = (
        Circle().sample(3000, density=lambda u: 1 + 0.6 * np.cos(u[:, 0]), random_state=0).points
    )
    values = DiffusionMap(2, random_state=0).fit(points).laplacian_eigenvalues_
    assert np.abs(values[1:] + 1).max() < 0.02


@pytest.mark.parametrize("sparse", [False, True])
def test_few_neighbours_keep_the_bandwidth_small(sparse):
    points = Circle().sample(3000, random_state=0).points
    if sparse:  # distances to 64 neighbours
        graph = kneighbors_graph(points, 64, mode="distance")
        model = DiffusionMap(2, metric="precomputed", random_state=0).fit(graph.maximum(graph.T))
    else:
        model = DiffusionMap(2, n_neighbors=64, random_state=0).fit(points)
    assert model.epsilon_ < 2.5 * model.kernel_sum_.plateau  # 35 times for all points
    assert np.abs(model.laplacian_eigenvalues_[1:] + 1).max() < 0.1


def test_a_weight_that_is_nearly_zero_gives_no_nan():
    # point 3 hangs on the others by a weight whose inverse has no finite square
    kernel = np.full((4, 4), 0.01)
    kernel[3] = kernel[:, 3] = 1e-214
    operator = DiffusionOperator(sp.csr_matrix(kernel), 1.0, keep_self=False)
    assert np.isfinite(operator.symmetric.toarray()).all() and np.isfinite(operator.scale).all()


@pytest.mark.filterwarnings("ignore:the neighbour graph falls into 3 pieces")
def test_each_eigenfunction_of_a_graph_in_pieces_is_zero_on_all_but_one():
    piece = np.random.default_rng(0).integers(0, 3, 900)
    points = np.random.default_rng(1).normal(size=(900, 2)) + 50 * piece[:, None]
    model = DiffusionMap(8, random_state=0).fit(points)
    on = np.array([np.abs(model.eigenfunctions_[piece == k]).max(axis=0) > 0 for k in range(3)])
    assert np.all(on.sum(axis=0) == 1) and np.all(on[:, :3].sum(axis=1) == 1)
    assert np.abs(model.laplacian_eigenvalues_[:3]).max() < 1e-9
    for k, function in zip(range(3), model.eigenfunctions_.T):
        values = function[function != 0]
        assert np.ptp(values) < 1e-9 * np.abs(values).max(), k
