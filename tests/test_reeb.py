"""The Reeb graph is read off points with known answers, survives files, and refuses what it cannot use."""

import pickle
import warnings

import numpy as np
import pytest

import idm_nb
from idm_nb import IteratedDiffusionMap, ReebGraph, feature_example, reeb_graph
from idm_nb.reeb import PrunedGraph, embedding_graph, persistence_pairs


def ring(n=400, seed=None):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    angle = angle if seed is None else np.random.default_rng(seed).uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)]


@pytest.fixture(scope="module")
def torus():
    X, y, _ = feature_example("torus x", 1400, random_state=0)
    model = IteratedDiffusionMap(random_state=0).fit(X[:1000], y[:1000, 0])
    return X, model, reeb_graph(model)


def test_line_ring_and_two_rings():
    counts = lambda graph: (graph.n_pieces, len(graph.branches), graph.n_loops, graph.n_ends)
    line = np.random.default_rng(0).uniform(0, 5, (400, 1))
    assert counts(ReebGraph(line, line[:, 0])) == (1, 1, 0, 2)
    graph = ReebGraph(ring(seed=0), ring(seed=0)[:, 0])
    assert counts(graph) == (1, 2, 1, 0) and graph.kinds == ["minimum", "maximum"]
    both = np.vstack([ring(), ring() + [0, 9]])
    graph = ReebGraph(both, both[:, 1])
    assert counts(graph) == (2, 4, 2, 0)
    assert len(np.intersect1d(graph.membership[:400], graph.membership[400:])) == 0


def test_constant_height_on_one_of_two_pieces():
    flat = np.c_[np.linspace(0, 1, 200), np.zeros(200)]
    points = np.vstack([flat, ring() + [5, 5]])
    graph = ReebGraph(points, points[:, 1])
    assert graph.n_pieces == 2 and graph.n_loops == 1
    assert np.unique(graph.membership[:200]).size == 1


def test_ring_of_coinciding_points_is_closed():
    # sixty copies of each point hide the neighbours on the ring from the 48 nearest
    points = np.repeat(ring(40), 60, axis=0)
    graph = ReebGraph(points, points[:, 0], threshold=0.3)
    assert (graph.n_pieces, graph.n_loops) == (1, 1)


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_order_shift_scale_and_reflection_do_not_matter(seed, noise):
    rng = np.random.default_rng(seed)
    points = ring(600, seed=seed) + noise * rng.normal(size=(600, 2))
    first = ReebGraph(points, points[:, 0])
    assert (first.n_pieces, first.n_loops, first.n_ends) == (1, 1, 0)
    order = rng.permutation(600)
    again = ReebGraph(points[order], points[order, 0])
    other = ReebGraph(7 * points + 3, 100 * points[:, 0] - 4)
    down = ReebGraph(points, -points[:, 0])  # slabs do not start at the same heights
    assert np.allclose(first.nodes, again.nodes)
    assert np.allclose(other.nodes, 100 * first.nodes - 4)
    assert np.allclose(np.sort(-down.nodes), first.nodes, atol=first.resolution)
    # branches are equal up to names, but for points so near to a node that two nodes would be one
    clear = np.abs(points[:, [0]] - first.nodes).min(axis=1) > 2 * first.resolution
    side = points[:, 1] > 0
    back = again.membership[np.argsort(order)]
    for found in (first.membership, back, other.membership, down.membership):
        right = np.mean((found == side)[clear])
        assert max(right, 1 - right) > 0.98  # all but strays


def test_pairs_of_random_trees_and_loops():
    # Euler: leaves and loops of the graph are the pairs, whatever its shape
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = 12
        heights = rng.permutation(n) + 0.0
        arcs = [tuple(sorted((v, rng.integers(v)), key=lambda u: heights[u])) for v in range(1, n)]
        extra = [tuple(sorted(rng.choice(n, 2, replace=False), key=lambda u: heights[u]))
                 for _ in range(rng.integers(4))]  # fmt: skip
        pairs = persistence_pairs(heights, arcs + extra)
        kinds = [kind for kind, _, _ in pairs]
        assert kinds.count("piece") == 1 and kinds.count("loop") == len(extra)
        assert pairs[0] == ("piece", 0, n - 1)
        turned = persistence_pairs(-heights, [(b, a) for a, b in arcs + extra])
        swap = {"minimum": "maximum", "maximum": "minimum"}
        mirrored = sorted((swap.get(k, k), -b, -a) for k, a, b in turned if k != "loop")
        assert mirrored == sorted(pair for pair in pairs if pair[0] != "loop")


def test_simplification_keeps_what_is_long():
    heights, arcs = [0, 1, 1.1, 2, 2.3, 4], [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)]
    assert len(PrunedGraph(heights, arcs).simplify(0.2, 1e-6).arcs) == 3
    # the only way up is not a twig, however short
    stem = PrunedGraph([0, 1, 1, 1.1], [(0, 1), (0, 1), (1, 3)]).simplify(0.5, 0.01)
    assert len(stem.arcs) == 3


def test_relative_neighbours_contain_the_shortest_spanning_tree():
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial.distance import squareform, pdist

    points = np.random.default_rng(0).normal(size=(120, 3))
    tree = np.argwhere(minimum_spanning_tree(squareform(pdist(points))).toarray() > 0)
    pairs = {tuple(pair) for pair in embedding_graph(points, 2)[0].tolist()}
    assert {tuple(sorted(pair)) for pair in tree.tolist()} <= pairs


def test_torus_new_points_and_files(torus, tmp_path):
    X, model, graph = torus
    assert (graph.n_pieces, graph.n_loops, graph.n_ends) == (1, 1, 2)
    assert np.array_equal(graph.assign(X[:1000]), graph.membership)
    new = graph.assign(X[1000:])
    inner = np.abs(X[1000:, 0]) < 0.7  # away from the forks the two sides have their own branches
    first = new[inner & (X[1000:, 1] > 0)]
    second = new[inner & (X[1000:, 1] < 0)]
    assert np.unique(first).size == np.unique(second).size == 1 and first[0] != second[0]
    graph.save(tmp_path / "g.npz")
    for again in (idm_nb.load(tmp_path / "g.npz"), ReebGraph.load(tmp_path / "g.npz"),
                  pickle.loads(pickle.dumps(graph))):  # fmt: skip
        assert np.array_equal(again.assign(X[1000:]), new) and again.pairs == graph.pairs
        assert np.array_equal(again.nodes, graph.nodes) and repr(again) == repr(graph)


def test_pictures(torus):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    graph = torus[2]
    assert len(graph.plot().lines) == len(graph.branches) + 1
    assert graph.plot_pairs().get_legend() is not None
    matplotlib.pyplot.close("all")


def test_data_frames_raise_no_warning():
    pandas = pytest.importorskip("pandas")
    X, y, _ = feature_example("torus x", 400, random_state=0)
    model = IteratedDiffusionMap(1, random_state=0).fit(pandas.DataFrame(X, columns=list("abc")), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reeb_graph(model).n_pieces == 1


def test_bad_input(torus):
    X, model, graph = torus
    vector = IteratedDiffusionMap(1, random_state=0).fit(X[:300], X[:300, :2])
    with pytest.raises(ValueError, match="needs one scalar feature as height, got 2 columns"):
        reeb_graph(vector)
    with pytest.raises(Exception, match="not fitted"):
        reeb_graph(IteratedDiffusionMap())
    points = ring()
    with pytest.raises(ValueError, match="threshold must lie between 0 and 1, got 0"):
        ReebGraph(points, points[:, 0], threshold=0)
    with pytest.raises(TypeError, match="threshold must be a number, got 'much'"):
        ReebGraph(points, points[:, 0], threshold="much")
    with pytest.raises(ValueError, match="threshold=1e-06 is finer than the data"):
        ReebGraph(points, points[:, 0], threshold=1e-6)
    with pytest.raises(ValueError, match="n_nearest must be an integer, 2 or more and at most 48"):
        ReebGraph(points, points[:, 0], n_nearest=1)
    with pytest.raises(ValueError, match="heights has 399 rows but X has 400"):
        ReebGraph(points, points[:-1, 0])
    with pytest.raises(ValueError, match="heights contains NaN at row 3"):
        ReebGraph(points, np.where(np.arange(400) == 3, np.nan, points[:, 0]))
    with pytest.raises(ValueError, match="heights is constant"):
        ReebGraph(points, np.ones(400))
    with pytest.raises(ValueError, match="made without a map"):
        ReebGraph(points, points[:, 0]).assign(points)
