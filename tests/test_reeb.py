"""The Reeb graph is read off points with known answers, survives files, and refuses what it cannot use."""

import pickle
import warnings

import numpy as np
import pytest
from book import refuses
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import idm_nb
from idm_nb import IteratedDiffusionMap, TableMap, reeb_graph
from idm_nb.branches import Branches, level_sets
from idm_nb.datasets import feature_example
from idm_nb.idm import ReebGraph


def ring(n=400, seed=None):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    angle = angle if seed is None else np.random.default_rng(seed).uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)]


def counts(graph):
    return graph.n_pieces, len(graph.branches), graph.n_loops, graph.n_ends


@pytest.fixture(scope="module")
def torus():
    X, y, _ = feature_example("torus x", 1400, random_state=0)
    model = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X[:1000], y[:1000, 0])
    return X, model, reeb_graph(model)


def test_line_ring_and_two_rings():
    line = np.random.default_rng(0).uniform(0, 5, (400, 1))
    assert counts(ReebGraph(line, line[:, 0])) == (1, 1, 0, 2)
    graph = ReebGraph(ring(seed=0), ring(seed=0)[:, 0])
    assert counts(graph) == (1, 2, 1, 0) and graph.kinds == ["minimum", "maximum"]
    both = np.vstack([ring(), ring() + [0, 9]])
    graph = ReebGraph(both, both[:, 1])
    assert counts(graph) == (2, 4, 2, 0)
    assert len(np.intersect1d(graph.membership[:400], graph.membership[400:])) == 0


@pytest.mark.parametrize("seed", range(3))
def test_filled_shapes_have_one_branch(seed):
    # nothing may be invented where level sets are connected, whatever their shape
    rng = np.random.default_rng(seed)
    strip, ball = rng.uniform(size=(800, 2)) * [10, 1], rng.normal(size=(800, 6))
    for points in (strip, strip[:, ::-1], ball):
        assert counts(ReebGraph(points, points[:, 0])) == (1, 1, 0, 2)


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_order_shift_scale_and_reflection_do_not_matter(seed, noise):
    rng = np.random.default_rng(seed)
    points = ring(600, seed=seed) + noise * rng.normal(size=(600, 2))
    first = ReebGraph(points, points[:, 0])
    assert (first.n_pieces, first.n_loops) == (1, 1)
    order = rng.permutation(600)
    again = ReebGraph(points[order], points[order, 0])
    other = ReebGraph(7 * points + 3, 100 * points[:, 0] - 4)
    down = ReebGraph(points, -points[:, 0])  # the windows do not start at the same rows
    assert np.allclose(other.nodes, 100 * first.nodes - 4)
    assert down.n_loops == again.n_loops == 1
    side, inner = points[:, 1] > 0, np.abs(points[:, 0]) < 0.7
    back = again.membership[np.argsort(order)]
    for found in (first.membership, back, other.membership, down.membership):
        right = np.mean((found == np.bincount(found[inner & side]).argmax())[inner] == side[inner])
        assert right > 0.98  # all but strays; the two sides are 1.4 apart at the least


def arm(rare, n=1000):
    "A trunk up to a height of 3, and an arm with this share of the rows that leaves it at 1."
    rng = np.random.default_rng(0)
    h, aside = rng.uniform(0, 3, n), rng.uniform(size=n) < rare
    h[aside] = rng.uniform(1, 3, aside.sum())
    X = np.c_[h, np.where(aside, h - 1, 0), 0 * h]
    return X + 0.03 * rng.normal(size=X.shape), h


@pytest.mark.parametrize("rare", [0.1, 0.3, 0.5])
def test_arms_join_within_the_heights_of_their_rows(rare):
    X, h = arm(rare)
    graph = ReebGraph(X, h)
    assert counts(graph) == (1, 3, 0, 3)
    for v, level in enumerate(graph.nodes):
        at = np.flatnonzero((graph.branches == v).any(axis=1))
        of_rows = [h[graph.membership == b] for b in at]
        # where branches have no height in common, the node lies between them
        low, high = sorted((max(x.min() for x in of_rows), min(x.max() for x in of_rows)))
        assert low <= level <= high
    # below, the arm is nearer to the trunk than three standard deviations of the noise
    fork = graph.nodes[graph.kinds.index("fork")]
    assert 1 <= fork <= 1.5


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_strands_that_cross_within_one_window_are_one_piece(seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (300, 2))
    assert counts(ReebGraph(X, X[:, 0] * X[:, 1])) == (1, 4, 0, 4)


@pytest.mark.parametrize("seed", [51, 55])
def test_two_saddles_at_one_height_are_one_piece(seed):
    X = np.random.default_rng(seed).uniform(0, 1, (1000, 2)) * [3, 2]
    assert counts(ReebGraph(X, np.sin(np.pi * X).prod(axis=1))) == (1, 6, 0, 6)


def two_strips(n, rng):
    "Two strips with the feature from 0 to 1 and from 0.5 to 1.5, three mean distances apart."
    side = rng.integers(0, 2, n)
    height = rng.uniform(size=n) + 0.5 * side
    return np.c_[rng.uniform(size=n) + (1 + 3 * np.sqrt(2 / n)) * side, height], height, side


@pytest.mark.parametrize("seed", range(3))
def test_an_arm_that_ends_beside_another_does_not_join_it(seed):
    rng = np.random.default_rng(seed)
    points, height, side = two_strips(3000, rng)
    graph = ReebGraph(points, height)
    assert (graph.n_pieces, len(graph.branches)) == (2, 2)
    assert adjusted_rand_score(side, graph.membership) > 0.98
    # a trunk with two arms, of which one ends
    x, y = rng.uniform(-1, 1, 4000), rng.uniform(0, 3, 4000)
    gap = 1.5 * np.sqrt(5.2 / 1000)
    inside = (y < 1) | ((x < -gap) & (y < 1.6)) | (x > gap)
    points = np.c_[x, y][inside][:1000]
    graph = ReebGraph(points, points[:, 1])
    assert (graph.n_pieces, len(graph.branches), graph.n_loops) == (1, 3, 0)


@pytest.mark.parametrize("gap", [4, 6])
def test_two_sheets_are_two_pieces(gap):
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 1000)
    X = np.c_[rng.uniform(size=(1000, 2)), side * gap * np.sqrt(2 / 1000)]
    graph = ReebGraph(X, X[:, 0])
    assert counts(graph) == (2, 2, 0, 4) and np.array_equal(
        graph.membership == graph.membership[side == 1][0], side == 1
    )


def groups_apart(rng, far=12.0, decimals=9, count=4, n=800):
    "Rows of some groups that lie `far` apart, a feature that depends on the group, and the group."
    group, height = rng.integers(0, count, n), rng.normal(size=count)
    X = np.c_[rng.normal(size=(n, 3)), far * np.eye(count)[group]].round(decimals)
    return X, X[:, 0] + height[group], group


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_pieces_and_no_forks(seed):
    X, y, group = groups_apart(np.random.default_rng(seed))
    graph = ReebGraph(X, y)
    assert counts(graph) == (4, 4, 0, 8) and "fork" not in graph.kinds
    assert len(np.unique(np.c_[group, graph.membership], axis=0)) == 4
    # also without a feature that is known: a constant inside of the groups
    graph = ReebGraph(X, group.astype(float))
    assert (graph.n_pieces, len(graph.branches)) == (4, 4)


def test_the_words_say_what_joins_the_pieces():
    X, y, _ = groups_apart(np.random.default_rng(0), count=2)
    assert reeb_graph(X, y).sentences()[0].startswith("no value of the feature joins the pieces: 2")
    line = np.random.default_rng(0).uniform(0, 5, (400, 1))
    assert reeb_graph(line, line[:, 0]).sentences()[0].startswith("1 piece")


@pytest.mark.parametrize("apart", [5.2, 4.7, 4.2])  # with 5, 9 and 15 % of the rows between them
def test_clusters_with_a_few_rows_between_are_no_fork(apart):
    rng, forks = np.random.default_rng(1), 0
    for _ in range(4):
        side, height = rng.choice([-0.5, 0.5], 1000), rng.uniform(0, 9, 1000)
        X = np.c_[apart * side + rng.normal(size=1000), height, rng.normal(size=(1000, 3))]
        graph = reeb_graph(X, height)
        forks += len(graph.branches) > graph.n_pieces
        if graph.n_pieces == 2:
            assert graph.sentences()[1].startswith("branches 0 and 1 at")  # with their support
    assert forks <= 1


def test_torus_new_points_and_files(torus, tmp_path):
    X, model, graph = torus
    assert (graph.n_pieces, graph.n_loops, graph.n_ends) == (1, 1, 2)
    assert graph.kinds == ["minimum", "fork", "fork", "maximum"]
    assert np.array_equal(graph.assign(X[:1000]), graph.membership)
    new, inner = graph.assign(X[1000:]), np.abs(X[1000:, 0]) < 0.7
    first, second = (new[inner & (side * X[1000:, 1] > 0)] for side in (1, -1))
    # away from the forks the two sides have their own branches
    assert np.unique(first).size == np.unique(second).size == 1 and first[0] != second[0]
    chances = graph.assign_proba(X[1000:])
    assert np.allclose(chances.sum(axis=1), 1) and np.array_equal(chances.argmax(axis=1), new)
    graph.save(tmp_path / "g.npz")
    for again in (
        idm_nb.load(tmp_path / "g.npz"),
        ReebGraph.load(tmp_path / "g.npz"),
        pickle.loads(pickle.dumps(graph)),
    ):
        assert np.array_equal(again.assign(X[1000:]), new) and repr(again) == repr(graph)
        assert np.array_equal(again.nodes, graph.nodes)


def test_evidence_that_is_asked_for(torus):
    # ten times the default
    assert counts(reeb_graph(torus[1], log_odds=np.log(200))) == counts(torus[2])
    finer = reeb_graph(torus[1], log_odds=4)
    assert np.array_equal(finer.assign(torus[0][:1000]), finer.membership)
    # two events are paid, and a row of the smaller of two sets brings one bit at most
    assert counts(reeb_graph(torus[1], log_odds=347)) == (1, 1, 0, 2)
    rng = np.random.default_rng(0)
    angle, noise = rng.uniform(0, 2 * np.pi, 1000), rng.normal(size=(1000, 2))
    fork = np.c_[np.cos(angle), 0.02 * np.sin(angle)] + 0.1 * noise
    assert counts(ReebGraph(fork, fork[:, 0])) == (1, 1, 0, 2)  # noise five times the gap hides it


def test_graph_without_a_map_assigns_rows_of_known_height():
    points = ring(seed=3)
    graph = ReebGraph(points[:300], points[:300, 0])
    inner = np.abs(points[300:, 0]) < 0.9
    found = graph.assign(points[300:], points[300:, 0])[inner]
    upper = points[300:, 1][inner] > 0
    assert len(np.unique(found[upper])) == len(np.unique(found[~upper])) == 1


def test_pictures(torus):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert len(torus[2].plot().lines) == len(torus[2].branches) + 1  # and one for the nodes
    matplotlib.pyplot.close("all")


def test_data_frames_raise_no_warning():
    pandas = pytest.importorskip("pandas")
    X, y, _ = feature_example("torus x", 400, random_state=0)
    model = IteratedDiffusionMap(1, regressor="kernel", random_state=0)
    model.fit(pandas.DataFrame(X, columns=list("abc")), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reeb_graph(model).n_pieces == 1


def test_bad_input(torus):
    X, model, graph = torus
    vector = IteratedDiffusionMap(1, regressor="ridge").fit(X[:300], X[:300, :2])
    refuses("needs one scalar feature as height, got 2 columns", lambda: reeb_graph(vector))
    refuses("not fitted", lambda: reeb_graph(IteratedDiffusionMap()), Exception)
    refuses("must be a fitted IteratedDiffusionMap, got list", lambda: reeb_graph([]), TypeError)
    refuses("log_odds must be a number, 0 or more, got -1", lambda: reeb_graph(model, log_odds=-1))
    points = ring()
    refuses("heights has 399 rows but X has 400", lambda: ReebGraph(points, points[:-1, 0]))
    with pytest.raises(ValueError, match="heights contains NaN at row 3"):
        ReebGraph(points, np.where(np.arange(400) == 3, np.nan, points[:, 0]))
    refuses("heights is constant", lambda: ReebGraph(points, np.ones(400)))
    refuses("made of points and heights", lambda: ReebGraph(points, points[:, 0]).assign(points))


@pytest.mark.parametrize("noise, warned", [(0, False), (0.1, False), (0.5, True), (1.6, True)])
def test_noise_in_a_given_feature_is_reported(noise, warned):
    "A window of 1000 rows of the torus spans 0.6 at least; the feature has a deviation of 1.7."
    X, y, _ = feature_example("torus x", 1000, random_state=0)
    seen = y[:, 0] + noise * np.random.default_rng(0).normal(size=1000)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reeb_graph(X, seen)
    assert ["y has noise of about" in str(w.message) for w in told] == [True] * warned


def test_several_features_are_not_one_branch_in_silence():
    X, y, _ = feature_example("torus x", 600, random_state=0)
    assert repr(Branches(X, X[:, :2])).endswith("rows; sheets of several features may be missed")
    assert repr(Branches(X, y)).endswith(" rows")
    X = X[:300]
    angle = np.arctan2(X[:, 1], X[:, 0])
    cases = ((X[:, :2], True), (np.c_[np.cos(angle), np.sin(angle)], False))
    for features, warned in cases:
        model = IteratedDiffusionMap(1, regressor="kernel", random_state=0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X, features)
        assert any("fit one of the features" in str(w.message) for w in told) == warned
        assert ("fit one of the features" in str(model.verdict_)) == warned
    table = np.c_[X, X[:, :2] @ [[2, 1], [-1, 2]]]
    frame = pytest.importorskip("pandas").DataFrame(table, columns="east north up a b".split())
    table = TableMap(["east", "north"], model=clone(model), random_state=0)
    with pytest.warns(UserWarning, match="fit one of the features, or one function of them"):
        table.fit(frame)
    assert str(table.verdict_).count("fit one of the features") == 1


def test_repeated_rows_do_not_change_the_graph():
    X, y, _ = feature_example("torus x", 600, random_state=0)
    once = reeb_graph(X, y[:, 0])
    thrice = reeb_graph(np.repeat(X, 3, axis=0), np.repeat(y[:, 0], 3))
    assert np.array_equal(thrice.branches, once.branches) and np.allclose(thrice.nodes, once.nodes)
    assert np.array_equal(thrice.membership, np.repeat(once.membership, 3))
    for seed in range(3):
        X, y, _ = groups_apart(np.random.default_rng(seed), decimals=0)
        assert len(np.unique(X, axis=0)) < 600
        graph, plain = reeb_graph(X, y), Branches(X, y)
        assert (graph.n_pieces, len(graph.branches)) == (plain.n_pieces, plain.n_branches) == (4, 4)
    refuses("3 rows that differ", lambda: reeb_graph(np.repeat(X[:3], 5, axis=0), np.arange(15.0)))


@pytest.mark.parametrize("factor, pieces", [(0.95, 1), (1.05, 2)])
def test_a_branch_costs_its_log_odds_and_the_number_of_places(factor, pieces, monkeypatch):
    "A cut through all windows pays at both ends, half of log_odds + log(N / size) each."
    X = np.random.default_rng(0).normal(size=(1000, 2))
    size = level_sets.level_sets(X, X[:, :1], window=1.5).size
    evidence = factor * (3 + np.log(1000 / size)) * size / 1000

    def cuts(points, features, walk):
        return [(0.0, np.zeros(size, dtype=int)), (evidence, (points[:, 1] > 0).astype(int))]

    monkeypatch.setattr(level_sets, "cuts_of_window", cuts)
    found = level_sets.level_sets(X, X[:, :1], log_odds=3, window=1.5)
    assert set(np.diff(found.offset)) == {pieces}


@pytest.mark.parametrize("share", [0.12, 0.5])
def test_probabilities_of_branches_are_shares(share):
    "Of two sheets with values from both, also if one has few rows."
    rng = np.random.default_rng(0)
    rare, height, side = rng.uniform(size=4000) < share, *rng.uniform(size=(2, 4000))
    X = np.column_stack([rare, height, side])
    y = (np.where(rare, 1 - height, height) + 0.3 * side)[:, None]
    found = Branches(X[:300], y[:300])
    assert found.n_branches == 2
    few = np.bincount(found.membership[rare[:300]]).argmax()
    said = found.assign_proba(X[300:], y[300:])
    right = said.argmax(axis=1) == np.where(rare[300:], few, 1 - few)
    assert right[rare[300:]].mean() > 0.98 and np.abs(right - said.max(axis=1)).mean() < 0.01


def test_rows_beyond_those_that_are_read_go_with_their_neighbours(monkeypatch):
    "A piece is read by some of its rows; a small piece beside it is read whole."
    X, y, _ = feature_example("torus x", 1800, random_state=0)
    X, y = np.vstack([X, X[:200] / 5 + 20]), np.vstack([y, y[:200]])
    whole = Branches(X, y)
    monkeypatch.setattr("idm_nb.branches.graph.MOST_READ", 900)
    part = Branches(X, y)
    assert part.ends.tolist() == whole.ends.tolist()
    assert np.abs(part.nodes - whole.nodes).max() < 0.2
    assert adjusted_rand_score(part.membership, whole.membership) > 0.9
    assert part.masses.sum() == len(X) and part.size > 900 ** (2 / 3)
    assert np.mean(part.assign(X[::7], y[::7]) == part.membership[::7]) > 0.97


def test_a_valley_of_the_density_is_no_gap():
    "The sides of the ovals of a torus hold few rows; seven columns of noise spread them."
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0, 2 * np.pi, (3000, 2)).T
    torus = np.c_[(2 + np.cos(a)) * np.cos(b), (2 + np.cos(a)) * np.sin(b), np.sin(a)]
    graph = ReebGraph(np.c_[torus, 0.3 * rng.normal(size=(3000, 7))], torus[:, 0])
    assert (graph.n_pieces, graph.n_loops, graph.n_ends) == (1, 1, 2)
