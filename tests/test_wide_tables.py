"""Tables with thousands of sparse columns: `TableMap`, files of cells and the command."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from idm_nb import IteratedDiffusionMap, TableMap, feature_relevance
from idm_nb.command.command_line import main
from idm_nb.tables.h5ad import SparseRows
from idm_nb.tables.reading import table_of

N, M = 240, 1200
OPTIONS = dict(model=IteratedDiffusionMap(1, regressor="ridge"), random_state=0)


@pytest.fixture(scope="module")
def cells():
    "Counts, hours and fates: 40 clock genes, and 40 genes of each of two fates after hour 10."
    rng = np.random.default_rng(0)
    hours, fate = rng.uniform(0, 24, N), rng.random(N) < 0.5
    rate, late = np.full((N, M), 0.2), np.clip(hours - 10, 0, None)[:, None]
    rate[:, :40] *= np.exp(hours[:, None] / 8)
    rate[:, 40:80] *= 1 + 2 * late * fate[:, None]
    rate[:, 80:120] *= 1 + 2 * late * ~fate[:, None]
    rate[:, 900:] = 0.005  # genes of few cells, one of which may be anywhere in the map
    names = [f"clock{k}" for k in range(40)] + [f"fate{k}" for k in range(80)]
    names += [f"gene{k}" for k in range(M - 120)]
    obs = pd.DataFrame({"hours": hours, "donor": (np.arange(N) % 20).astype(str)})
    return sp.csr_matrix(rng.poisson(rate)), obs.set_axis([f"cell{k}" for k in range(N)]), names


def frame_of(cells):
    "The cells as a frame of sparse columns with the hours."
    X, obs, names = cells
    logs = sp.csr_matrix(X, dtype=float).log1p()
    frame = pd.DataFrame.sparse.from_spmatrix(logs, columns=names)
    dose = np.where(np.arange(N) % 9, np.arange(N), np.nan)
    return frame.assign(hours=obs.hours.to_numpy(), dose=dose)


@pytest.fixture(scope="module")
def fitted(cells):
    return TableMap("hours", ignore=["dose"], **OPTIONS).fit(frame_of(cells))


def test_a_frame_of_sparse_columns_gives_the_map_of_its_matrix(cells, fitted):
    frame, found = frame_of(cells).drop(columns="dose"), fitted.fitted_
    assert [plan.kind for plan in found.roles.plans if plan.data] == ["sparse"]
    rows = found.rows.numbers - 1
    X = sp.csr_matrix(frame.drop(columns="hours").sparse.to_coo())
    model = IteratedDiffusionMap(**fitted.model_.get_params())
    model.fit(X[rows], frame.hours.to_numpy()[rows])
    assert np.array_equal(model.embedding_, fitted.model_.embedding_)
    new = found.kept.numbers - 1
    given = frame.iloc[new].drop(columns="hours")
    assert np.array_equal(fitted.predict(given).predicted_hours, model.predict(X[new]))
    turned = given[given.columns[::-1]].assign(more=1.0)
    assert np.array_equal(fitted.predict(turned).predicted_hours, model.predict(X[new]))
    with pytest.raises(ValueError, match="2 columns of training are missing, first 'fate7'"):
        fitted.predict(given.drop(columns=["fate7", "gene9"]))


def test_what_is_said_of_columns_names_the_genes(fitted, tmp_path):
    found = fitted.relevance()
    assert len(found) == M and fitted.relevance_.kind == "projection"
    real = ~found.column.str.startswith("gene")
    assert found.above_chance[real].mean() > 0.8 and found.above_chance[~real].mean() < 0.05
    assert fitted.fitted_.branches.n_branches == 3
    told = fitted.fitted_.contrast.table()
    fates = [row["column"].startswith("fate") for row in told]
    assert len(told) > 40 and np.mean(fates) > 0.9
    late = np.flatnonzero(fitted.fitted_.rows.truth[:, 0] > 15)[:1]
    row = fitted.fitted_.rows.part(late)
    table = table_of({"sparse columns": row.frame["sparse columns"].array})
    alike = fitted.alike(table, 3)
    assert alike.differs[0] == "" and alike.columns[-20:].tolist() == found.column[:20].tolist()
    assert len(fitted.counterparts(table, 2)) == 2
    page = fitted.report()
    assert "1200" in page and "share of its variation" in page and "gene900" not in page
    fitted.save(tmp_path / "m.npz")
    again = TableMap.load(tmp_path / "m.npz")
    pd.testing.assert_frame_equal(again.predict(table), fitted.predict(table))
    pd.testing.assert_frame_equal(again.relevance(), found)


def test_many_sparse_rows_are_fitted_on_landmarks(cells, fitted, monkeypatch):
    "The limits are lowered: 150 of 192 rows are landmarks, and the axes come from 100 of them."
    monkeypatch.setattr("idm_nb.tables.table_map.MOST_LANDMARKS", 150)
    monkeypatch.setattr("idm_nb.core.rows.ROWS_FOR_AXES", 100)
    frame = frame_of(cells)
    model = TableMap("hours", ignore=["dose"], **OPTIONS).fit(frame)
    found = model.fitted_
    assert len(found.rows) == 150 and found.model.map_.rows.basis.axes.shape == (M, 99)
    other = np.setdiff1d(np.arange(N), found.rows.numbers - 1)
    truth, values = frame.hours.to_numpy()[other], model.predict(frame).predicted_hours[other]
    true = 1 - np.mean((truth - values) ** 2) / truth.var()
    assert true > 0.8 and abs(true - model.verdict_.r2) < 0.1
    assert abs(model.verdict_.r2 - fitted.verdict_.r2) < 0.1


def test_other_columns_stand_beside_sparse_ones(cells):
    model = TableMap("hours", **OPTIONS).fit(frame_of(cells))
    found = model.fitted_.encoder
    assert found.labels()[:3] == ["dose", "dose has a gap", "clock0"]
    assert model.relevance().above_chance[model.relevance().column == "dose"].tolist() == [False]


def test_relevance_of_wide_rows_is_that_of_dense_ones(cells, fitted):
    X = fitted.fitted_.encode(fitted.fitted_.rows.frame)
    dense = feature_relevance(fitted.model_, X.toarray()).values
    assert np.allclose(feature_relevance(fitted.model_, X).values, dense, atol=1e-8)
    first, second = (feature_relevance(fitted.model_, Z) for Z in (X, X.toarray()))
    assert first.kind == "projection" and np.array_equal(first.above, second.above)
    told = "kind='permutation' is for dense tables of at most 1000 columns"
    with pytest.raises(ValueError, match=told):
        feature_relevance(fitted.model_, X, kind="permutation")


def test_sparse_rows_are_a_column_of_a_frame():
    "Parts of it are cut out and joined in the chapters."
    rows = SparseRows(sp.eye_array(4), "abcd")
    assert rows[1].shape == (1, 4) and len(rows.copy()) == 4 and rows.nbytes > 0
    assert np.shares_memory(rows.copy().table.data, rows.table.data)
    with pytest.raises(ValueError, match="no gaps"):
        rows.take([0, -1], allow_fill=True)


def test_the_command_ends_with_genes_of_fates(cells, tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    X, obs, names = cells
    table = anndata.AnnData(X, obs, pd.DataFrame(index=names))
    table.write_h5ad(tmp_path / "cells.h5ad")
    common = "--feature hours --iterations 1 --regressor ridge --quiet".split()
    given = ["fit", str(tmp_path / "cells.h5ad"), *common]
    assert main([*given, "--out", str(tmp_path / "all")]) == 0
    captured = capsys.readouterr()
    assert "logarithms of counts" in captured.err and "give groups='donor'" in captured.out
    page = (tmp_path / "all" / "report.html").read_text()
    assert "logarithms of counts" in page and "give groups=" in page
    genes = pd.read_csv(tmp_path / "all" / "branch_columns.csv")
    assert len(genes) > 20 and genes.column.str.startswith("fate").mean() > 0.9
    cells_ = pd.read_csv(tmp_path / "all" / "predictions.csv")
    assert len(cells_) == N and np.corrcoef(cells_.hours, cells_.predicted_hours)[0, 1] > 0.9
    out = tmp_path / "placed.csv"
    new = ["transform", str(tmp_path / "all" / "model.npz"), str(tmp_path / "cells.h5ad")]
    assert main([*new, "--out", str(out), "--quiet"]) == 0
    assert np.allclose(pd.read_csv(out).predicted_hours, cells_.predicted_hours)
    assert main([*given, "--group", "donor", "--no-counts", "--out", str(tmp_path / "raw")]) == 0
    captured = capsys.readouterr()
    assert "logarithms" not in captured.err and "give groups" not in captured.out


def test_genes_describe_branches_of_components(cells, tmp_path):
    anndata = pytest.importorskip("anndata")
    X, obs, names = cells
    table = anndata.AnnData(X, obs, pd.DataFrame(index=names))
    logs = sp.csr_matrix(X, dtype=float).log1p().toarray()
    logs -= logs.mean(axis=0)
    table.obsm["X_pca"] = logs @ np.linalg.svd(logs, full_matrices=False)[2][:30].T
    table.write_h5ad(tmp_path / "cells.h5ad")
    model = TableMap("hours", holdout=0, **OPTIONS).fit(tmp_path / "cells.h5ad")
    assert model.relevance().column.str.startswith("X_pca").all()
    told = [row["column"] for row in model.fitted_.contrast.table()]
    assert len(told) > 20 and sum(name.startswith("fate") for name in told) > 0.9 * len(told)
