"""The picture of a map and the report: what a colleague reads first must be right."""

import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import sparse

from idm_nb import IteratedDiffusionMap
from idm_nb.app.anndata import branch_columns
from idm_nb.app.report import model_report
from idm_nb.app.tables import Placed
from idm_nb.core.pictures import plot_map, scatter, viewing_axes
from idm_nb.datasets import feature_example

plt.switch_backend("agg")
OPTIONS = dict(regressor="kernel", random_state=0)


@pytest.fixture(scope="module")
def torus():
    X, y, _ = feature_example("torus x", 1000, random_state=0)
    return X, y, IteratedDiffusionMap(**OPTIONS).fit(X[:900], y[:900])


def lengths_per_unit(ax):
    "Pixels per unit of the data along each axis of a two-dimensional picture."
    ax.figure.canvas.draw()
    return np.abs(np.diff(ax.transData.transform([[0, 0], [1, 1]]), axis=0)[0])


@pytest.mark.parametrize("color", ["feature", "branch", "error"])
@pytest.mark.parametrize("size", [(5, 3), (3, 6)])
def test_pictures_have_one_scale(torus, color, size):
    ax = plt.figure(figsize=size).add_subplot()
    plot_map(torus[2], color, ax)
    across, up = lengths_per_unit(ax)
    assert np.isclose(across, up)
    assert len(ax.collections[0].get_offsets()) == 900
    plt.close(ax.figure)


def test_a_thin_cloud_is_thin_and_not_cut(torus):
    line = np.c_[np.linspace(0, 100, 50), np.linspace(0, 1e-3, 50)]
    ax = scatter(line)
    across, up = lengths_per_unit(ax)
    low, high = ax.get_ylim()
    assert np.isclose(across, up) and high - low > 39 and low < 0 < 1e-3 < high
    plt.close(ax.figure)
    same = scatter(np.ones((5, 2)))
    assert np.isfinite(same.get_xlim()).all()
    plt.close(same.figure)


def test_colours_must_be_known(torus):
    with pytest.raises(ValueError, match="color='height' is not known; choose one of 'feature'"):
        plot_map(torus[2], "height")


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_viewing_axes_are_orthonormal(columns):
    rng = np.random.default_rng(0)
    Z, branch = rng.normal(size=(60, columns)), rng.integers(0, 3, 60)
    for features in (Z[:, :1], Z[:, [0, 0]]):
        axes = viewing_axes(Z, features, branch)
        assert axes.shape == (columns, 2)
        if columns > 1:
            assert np.allclose(axes.T @ axes, np.eye(2))


def test_the_feature_grows_to_the_right(torus):
    X, y, model = torus
    held_out = model.predict(X[:900])
    for sign in (1, -1):
        Z = model.embedding_ * [sign, *(model.embedding_.shape[1] - 1) * [1]]
        axes = viewing_axes(Z, held_out, model.branch_)
        assert np.corrcoef(Z @ axes[:, 0], y[:900, 0])[0, 1] > 0.999


def test_gaps_in_the_feature_are_drawn():
    X, y, _ = feature_example("annulus radius", 300, random_state=0)
    y = np.where(np.arange(300)[:, None] % 5 == 0, np.nan, y)
    model = IteratedDiffusionMap(**OPTIONS).fit(X, y)
    ax = plot_map(model, name="radius (m)")
    assert len(ax.collections[0].get_offsets()) == 300
    assert ax.figure.axes[1].get_ylabel() == "radius (m)"
    plt.close(ax.figure)
    page = model_report(model, ["radius (m)"])
    assert "nan" not in re.sub(r'src="[^"]*"', "", page).lower()


def test_columns_of_noise_set_nothing_apart():
    rng = np.random.default_rng(0)
    flagged = []
    for _ in range(100):
        height, side = rng.uniform(size=(300, 1)), rng.integers(0, 2, 300)
        flagged.append(branch_columns(rng.normal(size=(300, 20)), height, side)["above"].any())
    # five per cent of the tables, and four standard errors of a hundred tables
    assert np.mean(flagged) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


def test_what_changes_with_the_feature_sets_nothing_apart():
    rng = np.random.default_rng(0)
    height = rng.uniform(size=(2000, 1))
    side = (rng.random(2000) < 0.2 + 0.6 * height[:, 0]).astype(int)  # branches of unlike heights
    table = np.c_[np.sin(3 * height), side] + 0.05 * rng.normal(size=(2000, 2))
    found = branch_columns(sparse.csr_matrix(table), height, side, ["clock", "side"])
    assert np.asarray(found["column"])[found["above"]].tolist() == ["side", "side"]
    difference = np.asarray(found["difference"])[found["above"]]
    assert np.allclose(difference, [-1, 1], atol=0.02)


def test_the_report_answers_in_order(torus):
    X, y, model = torus
    far = X[900:].copy()
    far[0] = 30
    new, names = Placed.new(model, far), ["<yield>"]
    page = model_report(model, names, columns=["a", "b", "c"], held_out=(y[900:], new))
    words = [
        "The columns explain",
        "data:image",
        "<h2>Branches",
        "Branch 2 against 1",
        "<h2>Errors",
    ]
    words += ["1 row is foreign", "<h2>What to do next", "foreign rows before", "<h2>What the est"]
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    assert "<yield>" not in page and "://" not in page
    assert page.count("<img") == page.count('<img alt="') == page.count("<figure>")
    # a foreign row does not change the size of the errors of the others
    error = np.sqrt(np.mean((new.predicted - y[900:])[1:] ** 2))
    assert f"typically off by {error:.2g};" in page


def test_the_report_on_noise_warns():
    X = np.random.default_rng(0).normal(size=(150, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = IteratedDiffusionMap(**OPTIONS).fit(X[:, 1:], X[:, 0])
    page = model_report(model, ["yield"])
    assert page.index("No relation was found") < page.index("data:image")
    assert "do not use predictions or branches" in page
