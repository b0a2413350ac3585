"""Sparse tables give the map of the same dense table, and are never made dense as a whole."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import idm_nb
from idm_nb import DiffusionMap, FeatureRegressor, IteratedDiffusionMap
from idm_nb.branches import branch_contrast
from idm_nb.core.rows import PrincipalAxes, RowLookup, canonical_rows
from idm_nb.diffusion.operator import both_ways
from idm_nb.regression.kernel import RidgeEstimate


def cells(n_rows, n_columns, seed=0):
    "Counts of which one column in ten follows an hour, as a logarithm, and the hours."
    rng = np.random.default_rng(seed)
    hours = rng.uniform(0, 24, n_rows)
    rate = np.full((n_rows, n_columns), 0.05)
    peaks = rng.uniform(0, 24, n_columns // 10)
    rate[:, ::10] += 2 * np.exp(-((hours[:, None] - peaks) ** 2) / 18)
    return np.log1p(rng.poisson(rate)), hours


@pytest.fixture(scope="module")
def wide():
    return cells(240, 1500)


@pytest.fixture(scope="module")
def fitted(wide):
    X, y = wide
    model = IteratedDiffusionMap(random_state=0).fit(sp.csr_array(X[:200]), y[:200])
    return model, IteratedDiffusionMap(random_state=0).fit(X[:200], y[:200])


FORMS = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array]


def test_a_narrow_sparse_table_gives_the_dense_map():
    X, y = cells(300, 500)
    fit = lambda rows: IteratedDiffusionMap(regressor="kernel", random_state=0).fit(rows, y[:250])
    dense = fit(X[:250])
    for form in FORMS:
        sparse, new = fit(form(X[:250])), form(X[250:])
        assert np.abs(dense.transform(new) - sparse.transform(new)).max() < 1e-8


def test_a_wide_sparse_table_gives_the_dense_map(wide, fitted):
    X, y = wide
    sparse, dense = fitted
    size = np.abs(dense.embedding_).max()
    assert np.abs(sparse.embedding_ - dense.embedding_).max() < 1e-8 * size
    for form in FORMS:
        new = form(X[200:])
        assert np.abs(sparse.transform(new) - dense.transform(X[200:])).max() < 1e-8 * size
        for a, b in zip(sparse.predict(new, return_std=True), dense.predict(X[200:], True)):
            assert np.allclose(a, b, rtol=1e-6)
        assert np.array_equal(sparse.kneighbors(new)[1], dense.kneighbors(X[200:])[1])
    assert sparse.score(sp.csr_array(X[200:]), y[200:]) > 0.9
    assert str(sparse.verdict_) == str(dense.verdict_)


def test_rows_in_single_precision(wide, fitted):
    X, y = wide
    low = sp.csr_matrix(X, dtype=np.float32)
    model = IteratedDiffusionMap(random_state=0).fit(low[:200], y[:200])
    assert model.map_.rows.X.dtype == np.float32
    assert np.array_equal(model.transform(low[:200]), model.embedding_)
    assert np.allclose(model.predict(low[200:]), fitted[0].predict(X[200:]), atol=0.5)


def test_pieces_in_threads_are_placed_like_all_rows_together(wide, fitted, monkeypatch):
    X = sp.csr_array(wide[0])
    names = ("values", "errors", "branch", "novel", "embedding", "coordinates_in_data")
    together, lengths, find = fitted[0].place(X), [], PrincipalAxes.__call__
    expected = {name: getattr(together, name) for name in names}

    def counted(self, rows):
        lengths.append(rows.shape[0])
        return find(self, rows)

    monkeypatch.setattr("idm_nb.core.work.PIECE", 9)
    monkeypatch.setattr(PrincipalAxes, "__call__", counted)
    with parallel_config("threading", n_jobs=2):
        placed = fitted[0].place(X)
        found = {name: getattr(placed, name) for name in names}
    assert all(np.allclose(found[name], expected[name], atol=1e-9) for name in names)
    assert sorted(lengths)[-2] == 9 and lengths.count(240) <= 1  # one rotation of all rows


def test_training_rows_are_recognised_in_every_form(wide, fitted):
    X, _ = wide
    for table in (X[:200], sp.csc_array(X[:200]), np.asfortranarray(X[:200])):
        assert np.array_equal(fitted[0].transform(table), fitted[0].embedding_)
        assert np.array_equal(fitted[1].transform(table), fitted[1].embedding_)
    unsorted = sp.csr_matrix(X[:200])
    unsorted.data, unsorted.indices = unsorted.data[::-1].copy(), unsorted.indices[::-1].copy()
    unsorted.indptr = np.r_[0, np.cumsum(np.diff(unsorted.indptr)[::-1])].astype(np.int32)
    assert np.array_equal(fitted[0].transform(unsorted), fitted[0].embedding_[::-1])
    entries, empty = sp.coo_matrix(X[:200]), np.flatnonzero(X[0] == 0)[0]
    places = (np.r_[entries.row, 0], np.r_[entries.col, empty])
    stored_zero = sp.csr_matrix((np.r_[entries.data, 0.0], places), entries.shape)
    before = stored_zero.copy()
    assert np.array_equal(fitted[0].transform(stored_zero), fitted[0].embedding_)
    assert stored_zero.nnz == before.nnz  # the caller's matrix stays as it was


def test_equal_rows_groups_weights_and_gaps(wide):
    X, y = wide
    X, y = np.vstack([X, X[:5]]), np.r_[y, y[:5] + 1]
    y[20] = np.nan
    given = dict(
        groups=np.r_[np.arange(240) // 4, np.arange(5) // 4],
        sample_weight=np.r_[np.full(10, 2), np.ones(230), np.zeros(5)],
    )
    options = dict(regressor="kernel", random_state=0)
    for extra in ({}, dict(groups=given["groups"]), given):
        models = [
            IteratedDiffusionMap(**options).fit(f(X), y, **extra) for f in (sp.csr_array, np.array)
        ]
        first, second = (model.embedding_ for model in models)
        assert len(models[0].map_.rows.y) == 240 and np.allclose(first, second, atol=1e-6)
    assert len(first) == 240  # rows without weight were left out


def test_saved_and_loaded(wide, fitted, tmp_path):
    X, _ = wide
    new = sp.csr_array(X)
    for model in fitted:
        model.save(tmp_path / "m.npz")
        for again in (idm_nb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
            assert np.array_equal(again.transform(new), model.transform(new))
            assert np.array_equal(again.predict(new, True)[1], model.predict(new, True)[1])


def test_bad_sparse_input_is_named(wide, fitted):
    X, y = wide
    bad = X.copy()
    bad[7, 11] = np.nan
    bad = sp.csr_matrix(bad)
    for call in (lambda: IteratedDiffusionMap().fit(bad, y), lambda: fitted[0].predict(bad)):
        with pytest.raises(ValueError, match="X contains NaN at row 7, column 11, and 1 such"):
            call()
    with pytest.raises(ValueError, match="X has 1499 features, but IteratedDiffusionMap is expect"):
        fitted[0].transform(sp.csr_matrix(X)[:, 1:])
    with pytest.raises(ValueError, match="all 9 rows of X are the same point"):
        IteratedDiffusionMap().fit(sp.csr_matrix(np.tile(X[0], (9, 1))), y[:9])
    with pytest.raises(ValueError, match="y has 239 rows but X has 240"):
        IteratedDiffusionMap().fit(sp.csr_matrix(X), y[1:])


def test_behind_a_column_transformer():
    rng = np.random.default_rng(0)
    city = rng.permutation(np.arange(400) % 300)
    frame = pd.DataFrame(
        {"city": city.astype(str), "street": rng.permutation(1200)[:400].astype(str)}
    )
    frame["size"] = rng.normal(size=400)
    y = frame["size"] + (city % 2)
    encode = OneHotEncoder(categories=[list(map(str, range(300))), list(map(str, range(1200)))])
    predicted = []
    for threshold in (0.0, 1.0):  # dense, sparse
        columns = ColumnTransformer(
            [("words", encode, ["city", "street"])],
            remainder="passthrough",
            sparse_threshold=threshold,
        )
        model = make_pipeline(columns, IteratedDiffusionMap(regressor="kernel", random_state=0))
        model.fit(frame[:350], y[:350])
        assert sp.issparse(model[0].transform(frame)) == bool(threshold)
        predicted.append(model.predict(frame[350:]))
    # the kernel matrix has a condition of 1e8
    assert np.allclose(*predicted, rtol=0, atol=1e-6)


def test_a_regressor_of_another_package_receives_the_columns(wide):
    X, y = wide
    seen = []

    class Spy(Ridge):
        def fit(self, X, y, sample_weight=None):
            seen.append((type(X), X.shape[1]))
            return super().fit(X, y, sample_weight)

    table = sp.csr_matrix(X)
    model = FeatureRegressor([Spy(), "forest"], random_state=0).fit(table[:200], y[:200])
    assert {kind for kind, _ in seen} == {sp.csr_matrix} and {m for _, m in seen} == {1500}
    assert model.score(table[200:], y[200:]) > 0.9 and model.n_features_in_ == 1500
    values, errors = model.predict(table[200:], return_std=True)
    assert (errors > 0).all() and not model.is_novel(table[200:]).any()


def test_equal_rows_are_found_in_a_wide_table():
    X, _ = cells(40, 1200)
    X = np.vstack([X, -0.0 * X[:1], 0 * X[:1], X[3:5]])
    for table in (X, sp.csr_matrix(X)):
        first, inverse = canonical_rows(table)
        assert len(first) == 41 and np.array_equal(X[first][inverse], X)
        assert RowLookup(table).find(sp.csr_array(X[[42, 3]])).tolist() == [3, 3]
    a, b = (canonical_rows(form(X)) for form in (np.array, sp.csr_array))
    assert all(np.array_equal(one, two) for one, two in zip(a, b, strict=True))


def test_a_sparse_table_is_never_dense():
    # dense, 1200 rows of 60000 columns would be 576 MB
    X = sp.random_array((1200, 60000), density=0.002, rng=0, format="csr")
    tracemalloc.start()
    axes = PrincipalAxes(X, 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    square = 8 * 1200**2  # the inner products of the rows, and what the eigensolver needs
    assert peak < 2 * table + axes.axes.nbytes + 4 * square + 4 * 2**23
    assert peak < 0.2 * 8 * 1200 * 60000


def test_ridge_regression_needs_two_squares_of_the_rows():
    X = sp.random_array((1600, 3000), density=0.02, rng=0, format="csr")
    y = np.random.default_rng(0).normal(size=(1600, 1))
    tracemalloc.start()
    RidgeEstimate(random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert peak < 2 * table + 2 * 8 * 1600**2 + 2**23


def test_a_leaking_column_is_found_among_many(wide):
    X, y = wide
    table = sp.csr_matrix(np.c_[X, np.round(y, 1)])
    model = IteratedDiffusionMap(regressor="ridge", random_state=0).fit(table, y)
    assert "y can be computed from column 1500" in str(model.verdict_)
    assert "occurs" not in str(model.verdict_)


def test_landmarks_of_a_sparse_table(wide):
    X, y = cells(600, 1500)
    options = dict(landmarks=150, regressor="ridge", random_state=0)
    model, dense = (IteratedDiffusionMap(**options).fit(rows, y) for rows in (sp.csr_matrix(X), X))
    assert np.array_equal(model.landmarks_, dense.landmarks_) and model.verdict_.r2 > 0.9
    assert np.allclose(model.transform(sp.csr_matrix(X)), dense.transform(X), atol=1e-6)
    placed, used = model.place(sp.csr_matrix(X)), np.isin(np.arange(600), model.landmarks_)
    assert placed.novel.mean() < 0.02 and placed.novel[used].mean() < 0.02  # all are of one kind
    assert placed.errors[used].mean() < 1.5 * placed.errors[~used].mean()


def test_cells_in_which_other_genes_are_active_are_novel(wide, fitted):
    new, other = wide[0][200:], wide[0][200:].copy()
    other[:, 1::10] += 1  # none of the axes of the training rows shows these columns
    regressor = FeatureRegressor(["ridge"], random_state=0).fit(wide[0][:200], wide[1][:200])
    for model in (*fitted, regressor):
        assert not model.is_novel(new).any() and model.is_novel(other).all()
        errors = [model.predict(sp.csr_array(rows), return_std=True)[1] for rows in (new, other)]
        assert errors[0].max() < errors[1].min()


def test_a_diffusion_map_of_a_sparse_table(wide, tmp_path):
    X, _ = wide
    options = dict(n_components=4, random_state=0)
    dense, sparse = (DiffusionMap(**options).fit(f(X[:200])) for f in (np.array, sp.csc_matrix))
    assert np.allclose(dense.eigenfunctions_, sparse.eigenfunctions_, atol=1e-8)
    assert np.allclose(dense.transform(X[200:]), sparse.transform(sp.csr_array(X[200:])), atol=1e-8)
    assert np.array_equal(sparse.transform(X[:200]), sparse.eigenfunctions_[:, 1:])
    sparse.save(tmp_path / "m.npz")
    again = idm_nb.load(tmp_path / "m.npz")
    assert np.array_equal(again.transform(sp.csr_array(X)), sparse.transform(sp.csr_array(X)))


def test_a_graph_of_nearest_neighbours_as_distances():
    X = np.random.default_rng(0).normal(size=(300, 2))
    graph = kneighbors_graph(X, 20, mode="distance")  # as in the obsp["distances"] of scanpy
    assert abs(graph - graph.T).max() > 0
    model = DiffusionMap(4, metric="precomputed", epsilon=0.05, random_state=0).fit(graph)
    whole = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.asarray((graph + graph.T).toarray() > 0)
    same = DiffusionMap(4, metric="precomputed", epsilon=0.05, random_state=0)
    same.fit(sp.csr_matrix(np.where(near, whole, 0)))
    assert np.allclose(model.eigenfunctions_, same.eigenfunctions_, atol=1e-8)
    differing = graph.copy()
    differing.data[:5000] *= 2
    with pytest.raises(ValueError, match="must be symmetric"):
        model.fit(differing)
    copies = sp.csr_matrix(([0.0, 0.1, 0.1], ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    assert both_ways(copies).nnz == 6  # a stored zero is a distance


def test_pictures_and_contrast_of_a_sparse_table(wide, fitted, tmp_path):
    X, y = wide
    model = fitted[0]
    idm_nb.save_explorer(model, tmp_path / "x.html")
    table = sp.csr_matrix(X[:200])
    found = branch_contrast(model, table)
    dense = branch_contrast(model, X[:200])
    assert len(found.columns) == 1500 and np.allclose(found.effect, dense.effect)
    assert str(idm_nb.reeb_graph(model)) == str(idm_nb.reeb_graph(fitted[1]))


def test_ridge_regression_of_many_columns_is_exact():
    # 1100 rows have more axes than coordinates
    X, y = cells(1100, 1300)
    table, y = sp.csr_matrix(X), y[:, None]
    dense, sparse = (RidgeEstimate(random_state=0).fit(rows, y) for rows in (X, table))
    assert np.allclose(dense.residuals_, sparse.residuals_, atol=1e-8)
    assert np.allclose(dense.predict(X + 0.1), sparse.predict(sp.csr_matrix(X + 0.1)), atol=1e-8)
    model, least = sparse.models_[0], sparse.models_[0].ridge
    centered = X - X.mean(axis=0)
    gram = centered.T @ centered + least * np.eye(1300)
    slopes = np.linalg.solve(gram, centered.T @ (y - y.mean()))
    assert np.allclose(model.slopes, slopes, atol=1e-8 * np.abs(slopes).max())
    again = FeatureRegressor(["ridge"], random_state=0).fit(table, y[:, 0])
    assert again.learning_curve_ is not None and again.candidates_["ridge"].spectrum is None


def test_new_rows_of_many_noisy_columns_are_not_novel():
    "Few rows lie far along axes that were found from them; new rows do not, but are of the same kind."
    rng = np.random.default_rng(0)
    hours, load = rng.uniform(0, 6, 1500), rng.normal(size=4000) * (rng.uniform(size=4000) < 0.1)
    cells = np.log1p(rng.poisson(0.2 * np.exp(np.outer(np.sin(hours / 2), load))))
    model = IteratedDiffusionMap(regressor="ridge", random_state=0)
    model.fit(sp.csr_array(cells[:1200]), hours[:1200])
    assert model.is_novel(sp.csr_array(cells[1200:])).mean() < 0.02
