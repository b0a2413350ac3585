"""The explorer: its callbacks, what it refuses, and the page it writes."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from idm_nb import DiffusionMap, IteratedDiffusionMap, explore, feature_example, save_explorer
from idm_nb.explorer import Exploration, explorer_html

X, Y, _ = feature_example("torus phi", 300, random_state=0)  # an angle as (sin, cos)


@pytest.fixture(scope="module")
def model():
    return IteratedDiffusionMap(2, random_state=0).fit(X, Y)


@pytest.fixture()
def widgets():
    return pytest.importorskip("ipywidgets")


@pytest.fixture(params=["image", "ipympl"])
def explorer(request, model, widgets):
    pytest.importorskip("ipympl") if request.param == "ipympl" else None
    return explore(model, Y, canvas=request.param)


def red(explorer):
    return np.asarray(explorer.picture.panels[0].near.get_offsets())


def test_every_slider_moves_the_picture(explorer):
    seen = []
    for name, value in (("iteration", 2), ("point", 11), ("neighbors", 20), ("turn", 90), ("tilt", -10),
                        ("solid", False), ("colour", "column 2"), ("iteration", 0)):  # fmt: skip
        explorer.controls[name].value = value
        seen.append(explorer.picture.png())
    assert len(set(seen)) == len(seen)
    e = explorer.exploration
    assert "Iteration 0 of 2" in explorer.status.value and "row 11" in explorer.status.value
    assert np.allclose(red(explorer), e.views[0][e.neighbors(0, 11, 20), :2])


def test_click_chooses_and_drag_turns(model, widgets):
    pytest.importorskip("ipympl")
    from matplotlib.backend_bases import MouseEvent

    explorer = explore(model, Y, canvas="ipympl")
    panel, canvas = explorer.picture.panels[1], explorer.canvas.widget
    explorer.picture.figure.canvas.draw()

    def mouse(kind, place):
        canvas.callbacks.process(f"{kind}_event", MouseEvent(f"{kind}_event", canvas, *place, button=1))

    mouse("motion_notify", (5, 5))  # without a button: nothing
    place = panel.ax.transData.transform(panel.positions[123, :2])
    mouse("button_press", place)
    mouse("button_release", place)
    found = explorer.point.value  # another point may be drawn at the same place
    assert np.linalg.norm(panel.positions[found, :2] - panel.positions[123, :2]) < 1e-9
    before = explorer.turn.value, explorer.tilt.value, explorer.point.value
    mouse("button_press", place)
    mouse("motion_notify", place + [20, 10])
    mouse("button_release", place + [20, 10])
    assert (explorer.turn.value, explorer.tilt.value) == (before[0] - 10, before[1] - 5)
    assert explorer.point.value == before[2]


def test_another_tau(explorer, model):
    explorer.tau.value = 0.6
    assert not explorer.refit.disabled and "press the button" in explorer.status.value
    explorer.refit.click()
    assert explorer.model.tau == 0.6 and model.tau == 0.95 and "Fitted in" in explorer.status.value
    explorer.tau.value = 0.95
    assert explorer.model is model and explorer.refit.disabled


def test_a_fit_that_fails_says_why(explorer, model, monkeypatch):
    def fail(self, *args):
        raise ValueError("no <luck>")

    explorer.tau.value = 0.6
    monkeypatch.setattr(IteratedDiffusionMap, "fit", fail)
    explorer.refit.click()
    assert "no &lt;luck&gt;" in explorer.status.value and explorer.model is model


def test_without_the_feature(model, widgets):
    explorer = explore(model, canvas="image")
    explorer.tau.value = 0.5
    assert explorer.refit.disabled and "call explore(model, y)" in explorer.status.value
    assert list(explorer.exploration.colours)[0] == "angle of the feature"  # known from the embedding


def test_colours_are_named_like_the_columns(widgets):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["east", "north", "up"])
    named = IteratedDiffusionMap(1, random_state=0).fit(frame, Y[:, 0])
    explorer = explore(named, Y[:, 0], canvas="image")
    assert explorer.colour.options == ("feature", "east", "north", "up")
    explorer.tau.value = 0.5
    explorer.refit.click()
    assert explorer.colour.options == ("feature", "east", "north", "up")
    assert list(explorer.exploration.colours) == ["feature", "east", "north", "up"]


def test_many_points_are_thinned(model):
    e = Exploration(model, Y, max_points=100)
    assert len(e.rows) == 100 and np.array_equal(e.clouds[1], model.embeddings_[1][e.rows])
    assert np.array_equal(e.features, Y[e.rows])


def test_one_column():
    line = IteratedDiffusionMap(1, random_state=0).fit(X[:, :1], Y[:, 0])
    assert "idm-explorer" in explorer_html(line, Y[:, 0])


def test_ipywidgets_absent(model, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"needs ipywidgets.*pip install 'idm_nb\[notebook\]'"):
        explore(model, Y)
    save_explorer(model, tmp_path / "page.html", Y)


def test_ipympl_absent(model, widgets, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipympl", None)
    monkeypatch.setitem(sys.modules, "ipympl.backend_nbagg", None)
    assert type(explore(model, Y).canvas).__name__ == "PlainCanvas"
    with pytest.raises(ImportError):
        explore(model, Y, canvas="ipympl")


@pytest.mark.parametrize("make, error, words", [
    (lambda: DiffusionMap(2).fit(X), TypeError, "model must be a fitted IteratedDiffusionMap, got DiffusionMap"),
    (lambda: make_pipeline(StandardScaler(), IteratedDiffusionMap(1)).fit(X, Y), TypeError, r"pipeline\[-1\]"),
    (lambda: IteratedDiffusionMap(), NotFittedError, "not fitted"),
])  # fmt: skip
def test_wrong_models(make, error, words):
    with pytest.raises(error, match=words):
        save_explorer(make(), "never.html")


def test_bad_arguments(model, widgets, tmp_path):
    with pytest.raises(ValueError, match="y has 299 rows but X has 300"):
        explore(model, Y[:-1])
    with pytest.raises(ValueError, match="neighbors must be an integer, 2 or more, got 1"):
        explore(model, neighbors=1)
    with pytest.raises(ValueError, match="canvas='paper' is not known"):
        explore(model, canvas="paper")
    with pytest.raises(ValueError, match="max_points must be an integer, 4 or more"):
        save_explorer(model, tmp_path / "page.html", max_points=1)
    assert not list(tmp_path.iterdir())


def test_page(model, tmp_path):
    save_explorer(model, tmp_path / "page.html", Y, title="A <torus>", max_points=200, max_columns=1)
    page = (tmp_path / "page.html").read_text()
    assert "A &lt;torus&gt;" in page and "http" not in page and "NaN" not in page
    assert '"column 0"' in page and '"column 1"' not in page
    assert page.count("<label>") == page.count("</label>") == 6  # every control has one
    save_explorer(model, tmp_path / "again.html", Y, title="A <torus>", max_points=200, max_columns=1)
    assert (tmp_path / "again.html").read_text() == page
