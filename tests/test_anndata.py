"""Tables of single cells: anything with the attributes of AnnData, and AnnData with scanpy where they are installed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from book import refuses
from scipy import sparse

from idm_nb import IteratedDiffusionMap, TableMap
from idm_nb.datasets import feature_example
from idm_nb.tables.reading import read_table
from idm_nb.tables.single_cells import branch_genes, fit, log_per_cell, project

OPTIONS = dict(n_iterations=1, regressor="kernel", random_state=0)
X, Y, _ = feature_example("torus x", 900, random_state=0)
NAMES = ["prediction", "std", "branch", "novel"]


def cells(rows=slice(None), **more):
    "A table of points of a torus with its feature, an angle and words in `obs`."
    count = len(X[rows])
    words = np.array(["a", "b"])[np.arange(count) % 2]
    obs = pd.DataFrame({"x": Y[rows, 0], "word": words, **more}, index=map(str, range(count)))
    table = SimpleNamespace(X=X[rows], obs=obs, obsm={"X_pca": X[rows]}, varm={}, uns={})
    table.var_names = ["x", "y", "z"]
    return table


@pytest.fixture(scope="module")
def fitted():
    adata = cells()
    return adata, fit(adata, "x", **OPTIONS)


def test_results_are_those_of_the_model(fitted):
    adata, model = fitted
    value, std = model.predict(X, return_std=True)
    assert np.array_equal(adata.obs.idm_prediction, value)
    assert np.array_equal(adata.obs.idm_std, std)
    assert np.array_equal(adata.obs.idm_branch.cat.codes, model.branch_)
    assert not adata.obs.idm_novel.any()
    assert str(model.verdict_) == adata.uns["idm"]["verdict"]
    Z, place = adata.obsm["X_idm"], model.transform(X)
    assert Z.shape == place.shape and np.allclose(Z @ Z.T, place @ place.T)  # turned only
    # the first is the feature, the second tells the two sides apart
    assert abs(np.corrcoef(Z[:, 0], Y[:, 0])[0, 1]) > 0.999
    middle = np.abs(Y[:, 0]) < 0.5
    side = Z[middle, 1] > (Z[middle, 1].max() + Z[middle, 1].min()) / 2
    agree = np.mean(side == (X[middle, 1] > 0))
    assert max(agree, 1 - agree) > 0.98
    assert branch_genes(adata)[["first", "second", "gene"]].to_numpy().tolist() == [["1", "2", "y"]]
    assert len(branch_genes(adata, every=True)) == 3


def test_new_cells(fitted):
    adata, model = fitted
    new = cells(slice(0, 50))
    new.obsm = {"X_pca": X[:50] + 0.01}
    new.obsm["X_pca"][0] = 50.0
    assert project(new, model, key_added="later") is new
    assert np.array_equal(new.obs.later_prediction, model.predict(new.obsm["X_pca"]))
    assert new.obs.later_novel.iloc[0] and new.obs.later_novel.sum() == 1
    assert list(new.obs.later_branch.cat.categories) == list(adata.obs.idm_branch.cat.categories)


def test_components_of_the_reference():
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0][:, :2]
    adata = cells()
    adata.X, adata.varm["PCs"] = sparse.csr_matrix(X), axes
    adata.obsm["X_pca"] = (X - X.mean(axis=0)) @ axes
    model = fit(adata, "x", **OPTIONS)
    new = cells(slice(0, 30))
    new.X, new.var_names, new.obsm = X[:30][:, [2, 0, 1]], ["z", "x", "y"], {}
    project(new, model, reference=adata)
    assert np.allclose(new.obsm["X_pca"], adata.obsm["X_pca"][:30])
    # rounding makes new rows of them: their places are those of rows without a known feature
    place = model.transform(new.obsm["X_pca"])
    assert np.allclose(np.linalg.norm(new.obsm["X_idm"], axis=1), np.linalg.norm(place, axis=1))
    new.var_names = ["z", "x", "w"]
    with pytest.raises(ValueError, match="1 genes of the reference are missing, first 'y'"):
        project(new, model, reference=adata)
    adata.X = 2 * adata.X
    new.var_names = ["z", "x", "y"]
    refuses("is not what its", lambda: project(new, model, reference=adata))


class OpenFile:
    "The matrix of a file that is open, as AnnData has it."

    def __getitem__(self, rows):
        return X[rows]


def test_genes_of_new_cells_are_found_by_their_names(fitted):
    adata = cells()
    adata.X = OpenFile()
    model = fit(adata, "x", use_rep="X", **OPTIONS)
    new = cells(slice(0, 50))
    new.X, new.var_names = np.c_[X[:50, ::-1] + 0.01, np.ones(50)], ["z", "y", "x", "more"]
    project(new, model, use_rep="X", reference=adata)
    assert np.array_equal(new.obs.idm_prediction, model.predict(X[:50] + 0.01))
    assert model.verdict_.what == "x"
    new.var_names = ["z", "y", "x", "x"]
    with pytest.raises(
        ValueError, match="gene 'x' occurs more than once: call adata.var_names_make_unique"
    ):
        project(new, model, use_rep="X", reference=adata)
    new.var_names = ["z", "y", "more", "last"]
    with pytest.raises(ValueError, match="1 genes of the reference are missing, first 'x'"):
        project(new, model, use_rep="X", reference=adata)
    fitted[0].layers = {"raw": X}
    refuses("layers has no 'counts'; it has raw", lambda: branch_genes(fitted[0], layer="counts"))
    assert branch_genes(fitted[0], layer="raw").gene.tolist() == ["y"]


def test_an_angle_is_two_columns():
    ring, angle, _ = feature_example("annulus angle", 400, random_state=0)
    obs = pd.DataFrame(angle, columns=["sin", "cos"])
    adata = SimpleNamespace(X=ring, obs=obs, obsm={}, uns={}, var_names=["a", "b"])
    fit(adata, ["sin", "cos"], use_rep="X", **OPTIONS)
    assert {"idm_prediction_sin", "idm_prediction_cos", "idm_std_cos"} <= set(adata.obs)


def test_cells_without_a_value_are_placed():
    adata = cells()
    adata.obs.loc[adata.obs.index[:100], "x"] = np.nan
    fit(adata, "x", **OPTIONS)
    missed = adata.obs.idm_prediction[:100] - Y[:100, 0]
    assert np.sqrt(np.mean(missed**2)) < 0.1 * Y.std()
    assert np.isfinite(adata.obsm["X_idm"]).all()


@pytest.mark.parametrize(
    "key, options, message",
    [
        ("hour", {}, "obs has no column 'hour'; it has x, word"),
        ("word", {}, r"obs\['word'\] is not a column of numbers \(the first value is 'a'\)"),
        ("day", {}, r"obs\['day'\] is not a column of numbers"),
        ("path", {}, r"obs\['path'\] is infinite in 2 cells, as a pseudotime is where no path"),
        (
            "x",
            dict(use_rep="X", counts=True),
            "negative numbers, so they are no counts: give count",
        ),
        ("x", dict(use_rep="X_umap"), "obsm has no 'X_umap' .it has 'X_pca'.: run scanpy.pp.pca"),
        ("x", dict(groups="donor"), "obs has no column 'donor'"),
        ("x", dict(groups="day"), r"obs\['day'\] has a gap; cells without a group"),
    ],
)
def test_messages(key, options, message):
    adata = cells(day=pd.date_range("2020-01-01", periods=900).where(np.arange(900) > 0))
    adata.obs["path"] = np.r_[np.inf, np.inf, Y[2:, 0]]
    refuses(message, lambda: fit(adata, key, **options, **OPTIONS))


def test_files(tmp_path):
    anndata = pytest.importorskip("anndata")
    plain = cells()
    adata = anndata.AnnData(sparse.csr_matrix(X), plain.obs, pd.DataFrame(index=plain.var_names))
    adata.obsm["X_pca"] = X.copy()
    fit(adata, "x", **OPTIONS)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert np.array_equal(again.obsm["X_idm"], adata.obsm["X_idm"])
    for name in NAMES:
        assert again.obs[f"idm_{name}"].equals(adata.obs[f"idm_{name}"])
    table = read_table(tmp_path / "cells.h5ad")
    assert table.data == ["X_pca1", "X_pca2", "X_pca3"] and table.names[:3] == ["cell", "x", "word"]
    del adata.obsm["X_pca"]
    adata.write_h5ad(tmp_path / "genes.h5ad")
    table = read_table(tmp_path / "genes.h5ad")
    assert table.data == ["x", "y", "z"] and np.allclose(table.frame["y"], X[:, 1])
    assert np.allclose(table.frame["obs_x"], Y[:, 0])  # a gene has the name x
    (tmp_path / "no.h5ad").write_text("no table")
    refuses("no.h5ad cannot be read: ", lambda: read_table(tmp_path / "no.h5ad"))


@pytest.mark.parametrize("genes", [False, True])
def test_a_file_is_fitted_as_its_table_in_python(tmp_path, genes):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    counts = sparse.csc_matrix(rng.poisson(np.exp(X @ rng.normal(size=(3, 120)))))
    adata = anndata.AnnData(counts, cells().obs)
    if not genes:  # components have a common unit, and the last is small
        adata.obsm["X_pca"] = np.c_[X, 0.01 * rng.normal(size=len(X))]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    model = fit(adata, "x", use_rep="X" if genes else "X_pca", **OPTIONS)
    inner = IteratedDiffusionMap(**OPTIONS)
    table = TableMap("x", model=inner, random_state=0, holdout=0).fit(tmp_path / "cells.h5ad")
    assert table.fitted_.scale == "none" and len(table.fitted_.roles.data) == (1 if genes else 4)
    assert np.allclose(table.model_.map_.rows.X, model.map_.rows.X)
    found = table.predict(tmp_path / "cells.h5ad")
    assert np.allclose(found.predicted_x, adata.obs.idm_prediction)


def test_counts_of_many_genes_stay_sparse():
    rng = np.random.default_rng(0)
    hour = rng.uniform(0, 24, 200)
    rate = np.full((200, 1500), 0.05)
    peaks = rng.uniform(0, 24, 150)
    rate[:, ::10] += 2 * np.exp(-((hour[:, None] - peaks) ** 2) / 18)
    molecules = sparse.csr_matrix(rng.poisson(rate))
    obs = pd.DataFrame({"hour": hour, "donor": (np.arange(200) % 5).astype(str)})
    options = dict(use_rep="X", **OPTIONS)

    def table(X):
        names = [f"gene{k}" for k in range(1500)]
        return SimpleNamespace(X=X, obs=obs.copy(), obsm={}, uns={}, var_names=names)

    adata = table(molecules)
    with pytest.warns(UserWarning, match="'donor' has 5 values.*give groups='donor'"):
        model = fit(adata, "hour", **options)
    assert sparse.issparse(model.map_.rows.X) and model.verdict_.r2 > 0.9
    assert adata.uns["idm"]["verdict"].startswith("The genes are logarithms of counts per ten thou")
    assert adata.uns["idm"]["params"]["counts"] is True
    logs = log_per_cell(molecules)
    assert np.allclose(np.expm1(logs.toarray()).sum(axis=1), 10000)
    again = table(logs)
    fit(again, "hour", groups="donor", **options)
    assert "counts" not in again.uns["idm"]["verdict"]
    with pytest.warns(UserWarning, match="X holds whole numbers.*give counts=True"):
        fit(table(molecules.astype(float)), "hour", groups="donor", **options)
    new = table(molecules[:50])
    new.obs = new.obs[:50]
    project(new, model, use_rep="X")
    assert np.array_equal(new.obs.idm_prediction, adata.obs.idm_prediction[:50])
    adata.obs["idm_branch"] = pd.Categorical(np.where(rng.random(200) < 0.5, "0", "1"))
    assert list(branch_genes(adata, every=True).columns[:3]) == ["first", "second", "low"]


def test_results_of_a_map_before_do_not_stay():
    adata = cells()
    adata.obs["y"] = X[:, 1]
    fit(adata, ["x", "y"], **OPTIONS)
    assert "idm_prediction_y" in adata.obs
    fit(adata, "x", **OPTIONS)
    names = [name for name in adata.obs if "prediction" in name or "std" in name]
    assert names == ["idm_prediction", "idm_std"]
    adata.X = None
    refuses("the table has no genes: its X is None", lambda: branch_genes(adata))
