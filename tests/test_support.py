"""How sure a fork is, and what sets its branches apart: invariants, files, groups, and input that cannot be used."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from book import refuses

import idm_nb
from idm_nb import IteratedDiffusionMap, reeb_graph
from idm_nb.branches import BranchContrast, Branches, branch_contrast, supported
from idm_nb.branches.level_sets import level_sets
from idm_nb.branches.support import SUPPORT, GluedGraph
from idm_nb.idm import ReebGraph


def forked(n, seed=0, gap=0.25):
    "A wide fork, and above it a narrow one with strands a `gap` apart."
    rng = np.random.default_rng(seed)
    f, arm, strand = rng.uniform(0, 3, n), rng.choice([-1, 1], n), rng.choice([-1, 1], n)
    x = arm * np.clip(f - 1, 0, 0.7)
    x += (arm > 0) * strand * gap / 2 * np.clip(4 * (f - 1.8), 0, 1)
    return np.c_[x + rng.uniform(-0.06, 0.06, n), f], f


@pytest.fixture(scope="module")
def graph():
    return reeb_graph(*forked(1000))


def test_support_does_not_depend_on_units_order_or_sides():
    X, f = forked(600)
    graph, order = Branches(X, f), np.random.default_rng(1).permutation(600)
    assert np.allclose(graph.odds, graph.odds.T, equal_nan=True)
    assert np.allclose(Branches(1000 * X + 7, 5 + 2 * f).odds, graph.odds, equal_nan=True)
    assert np.allclose(Branches(X[order], f[order]).odds, graph.odds, equal_nan=True)
    assert np.isfinite(graph.odds).any() and np.nanmin(graph.odds) >= 0


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_is_lost_at_its_support(seed):
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, 600)
    ring = np.c_[np.cos(turn), np.sin(turn)] + 0.05 * rng.normal(size=(600, 2))
    odds = float(
        np.nanmin(Branches(ring, ring[:, 0]).odds)
    )  # of the two sides: a stem is beside none
    for more, sets in ((-0.1, 2), (0.1, 1)):
        found = level_sets(ring, ring[:, 0], log_odds=odds + more)
        assert np.diff(found.offset).max() == sets


@pytest.mark.parametrize("seed", range(20))
def test_glued_graphs_are_graphs(seed):
    # random trees of heights: whatever is glued, each branch goes up and all heights stay covered
    rng = np.random.default_rng(seed)
    nodes = np.sort(rng.uniform(size=9))
    ends = np.array([sorted((int(rng.integers(0, k)), k)) for k in range(1, 9)])
    glued, branch = GluedGraph(nodes, ends), rng.integers(0, 8, 500)
    f = rng.uniform(*nodes[ends[branch]].T)
    for _ in range(12):
        low, high = glued.nodes[glued.ends].T
        at = glued.at(branch, f)
        assert np.all(low < high) and np.all((low[at] <= f) & (f <= high[at]))
        # no branch ends where just one goes on
        up, down = (np.bincount(side, minlength=len(glued.nodes)) for side in glued.ends.T)
        assert not np.any((up == 1) & (down == 1))
        pairs = [
            (a, b)
            for b in range(len(low))
            for a in range(b)
            if max(low[a], low[b]) < min(high[a], high[b])
        ]
        if not pairs:
            break
        count = len(glued.ends)
        glued.glue(*pairs[rng.integers(len(pairs))])
        assert np.array_equal(np.unique(glued.branch), np.arange(len(glued.ends)))
        assert len(np.unique(glued.branch)) <= count + 2  # at most two branches are cut


def test_levels_are_nested(graph):
    counts = [len(graph.at(t).branches) for t in (0, SUPPORT, 50, 100, np.inf)]
    assert counts[0] == len(graph.branches) == 5 and counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    half = graph.at(50)
    assert len(half.branches) == 3 and len(half.candidates) == 1 and "1 candidate" in repr(half)
    assert half.candidates[0]["odds"] < 50 <= min(half.support()["odds"])
    again = half.at(0)
    assert np.array_equal(again.membership, graph.membership) and repr(again) == repr(graph)
    words = "\n".join(half.sentences())
    assert "candidate: branch" in words and ": support " in words
    # rows of one branch of the fine graph at one height are on one branch of the coarse one
    new, f = forked(300, seed=5)
    proba, branch = half.assign_proba(new, f), half.assign(new, f)
    assert np.allclose(proba.sum(axis=1), 1)
    clear = proba.max(axis=1) > 0.7
    assert np.array_equal(proba.argmax(axis=1)[clear], branch[clear])
    assert len(half.plot().lines) >= 3


def test_level_by_argument_and_files(graph, tmp_path):
    X, f = forked(1000)
    assert np.array_equal(reeb_graph(X, f, support=True).membership, graph.at().membership)
    half = reeb_graph(X, f, support=50)
    assert half.support() == graph.at(50).support() and len(half.candidates) == 1
    half.save(tmp_path / "g.npz")
    again = idm_nb.load(tmp_path / "g.npz")
    assert repr(again) == repr(half) and np.array_equal(again.nodes, half.nodes)
    assert np.array_equal(again.assign(X[:50], f[:50]), half.assign(X[:50], f[:50]))
    assert again.candidates == half.candidates and again.support() == half.support()


def test_a_map_has_support_and_contrast():
    X, f = forked(700, gap=0)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["across", "height"])
    model = IteratedDiffusionMap(1, regressor="ridge", random_state=0).fit(frame[:600], f[:600])
    graph = reeb_graph(model, support=True)
    assert len(graph.branches) == 3 and graph.candidates == []
    assert np.array_equal(graph.assign(frame[600:]), model.assign(frame[600:]))
    for source in (model, graph):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            contrast = branch_contrast(source, frame[:600], name="yield")
        assert [row["column"] for row in contrast.table()] == ["across"]
        (sentence,) = contrast.sentences()
        assert sentence.startswith("branch 2 against 1 at yield 1") and "chance" in sentence
    assert len(contrast.plot().axes) == 1


def test_one_branch_has_no_pairs():
    line = np.random.default_rng(0).uniform(0, 5, (300, 1))
    graph = reeb_graph(line, line[:, 0], support=True)
    assert len(graph.branches) == 1 and graph.support()["odds"] == [] and graph.candidates == []


def test_few_rows_and_equal_features():
    rng = np.random.default_rng(0)
    for n in (4, 8, 20):
        X = rng.normal(size=(n, 2))
        for f in (X[:, 0], (np.arange(n) == 0).astype(float)):
            assert len(supported(Branches(X, f))[1]["odds"]) == 0


def test_pieces_are_counted_apart_from_branches():
    X, f = forked(900, gap=0)
    both = np.vstack([X, np.c_[np.full(450, 30.0), f[:450]]])
    graph = ReebGraph(both, np.r_[f, f[:450]])
    assert graph.n_pieces == 2
    assert repr(graph).startswith("ReebGraph: 2 pieces; ") and "has 1 branch" in repr(graph)
    assert "3 branches, 0 loops, 3 ends" in repr(graph)


def test_what_a_discrete_column_says():
    rng = np.random.default_rng(0)
    f, side = rng.uniform(size=400), np.arange(400) % 2
    X = np.c_[f, 5 * side, rng.integers(0, 4, 400), rng.normal(size=400)]
    contrast = BranchContrast(X, f, side, columns=["f", "kind", "count", "noise"], pieces=[0, 1])
    assert list(contrast.tells[0]) == [1] and [row["tells"] for row in contrast.table()] == [True]
    assert "this is column kind (5 against 0)" in contrast.sentences()[0]
    assert "branch 1 (piece 1) against 0 (piece 0)" in contrast.sentences()[0]
    assert len(contrast.table(every=True)) == 4


def test_contrast_does_not_depend_on_units_order_or_sparsity(tmp_path):
    rng = np.random.default_rng(1)
    f, side = rng.uniform(size=500), np.arange(500) % 2
    X = np.c_[f, 4 * side + rng.normal(size=500), rng.normal(size=(500, 3))]
    first = BranchContrast(X, f, side)
    other = BranchContrast(X, 100 * f - 7, side, table=1000 * X + 1e6)
    assert np.allclose(first.effect, other.effect) and np.allclose(first.chance, other.chance)
    assert np.allclose(1000 * first.difference, other.difference)
    swapped = BranchContrast(X, f, 1 - side)
    assert np.allclose(first.effect, -swapped.effect)
    thin = BranchContrast(X, f, side, table=sp.csr_matrix(X))
    assert np.allclose(first.effect, thin.effect) and np.allclose(first.chance, thin.chance)
    first.save(tmp_path / "c.npz")
    assert idm_nb.load(tmp_path / "c.npz").sentences() == first.sentences()


def test_contrast_of_several_features_and_of_nothing():
    rng = np.random.default_rng(0)
    f, side = rng.uniform(size=(600, 2)), np.arange(600) % 2
    X = np.c_[f, 6 * side + rng.normal(size=600)]
    contrast = BranchContrast(X, f, side)
    assert [row["column"] for row in contrast.table()] == ["column 2"]
    assert " at " not in contrast.sentences()[0]
    alone = BranchContrast(X, f[:, 0], np.zeros(600, dtype=int))
    assert alone.table() == alone.sentences() == []
    apart = BranchContrast(X, f[:, 0] + 5 * side, side)  # no value in common
    assert apart.table(every=True) == []


def test_bad_input(graph):
    X, f = forked(60)
    refuses("support must be a number", lambda: reeb_graph(X, f, support=-1))
    refuses("support must be a number", lambda: graph.at(-0.1))
    with pytest.raises(TypeError, match="support must be a number, got 'most'"):
        reeb_graph(X, f, support="most")
    refuses("heights has 59 rows", lambda: reeb_graph(X, f[:-1]))
    refuses("made of points and heights", lambda: branch_contrast(graph, X))
    with pytest.raises(ValueError, match="table contains NaN"):
        BranchContrast(X, f, f > 1, table=np.where(X > 1e9, X, np.nan))
