"""The explorer: its answers, its callbacks, what it refuses, and the page it writes."""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from book import refuses
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import idm_nb
from idm_nb import DiffusionFlow, DiffusionMap, IteratedDiffusionMap, explore, save_explorer
from idm_nb.datasets import feature_example
from idm_nb.idm.estimator import ClosedFlow
from idm_nb.study.explorer import Exploration, bar_of, description, draw, explorer_html, page_file

X, Y, _ = feature_example("torus phi", 300, random_state=0)  # an angle as (sin, cos)


@pytest.fixture(scope="module")
def model():
    return IteratedDiffusionMap(2, regressor="kernel", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def branched():
    points, feature, _ = feature_example("torus x", 1200, random_state=0)
    found = IteratedDiffusionMap(3, regressor="kernel", random_state=0).fit(points, feature)
    assert found.branches_.n_branches > 1
    return found


@pytest.fixture()
def widgets():
    return pytest.importorskip("ipywidgets")


@pytest.fixture()
def explorer(model, widgets):
    return explore(model)


def test_every_slider_moves_the_picture(explorer):
    seen, controls = [], explorer.controls
    moves = dict(iteration=2, point=11, neighbors=20)
    for name, value in (*moves.items(), ("colour", "column 2"), ("iteration", 0)):
        getattr(controls, name).value = value
        seen.append(explorer.image.value)
    assert len(set(seen)) == len(seen)
    assert "Iteration 0 of 2" in explorer.status.value and "row 11" in explorer.status.value


def test_another_tau(explorer, model):
    controls, before = explorer.controls, model.embedding_.copy()
    controls.iteration.value = 2
    controls.tau.value = 0.6
    assert explorer.exploration.taus == (0.6,) and "tau = 0.60" in explorer.status.value
    again = IteratedDiffusionMap(2, tau=0.6, regressor="kernel", random_state=0).fit(X, Y)
    assert np.allclose(explorer.exploration.points[2], again.embedding_)
    assert model.tau == 0.95 and np.array_equal(model.embedding_, before)
    controls.tau.value = 0.95
    assert np.array_equal(explorer.exploration.points[2], before)


def test_another_tau_takes_more_steps(widgets):
    automatic = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X, Y)
    controls = explore(automatic).controls
    controls.tau.value = 0.9
    assert controls.iteration.max > automatic.n_iterations_
    controls.iteration.value = controls.iteration.max
    controls.tau.value = 0.95
    assert controls.iteration.value == controls.iteration.max == automatic.n_iterations_


def test_taus_of_a_sequence(widgets):
    several = IteratedDiffusionMap(3, tau=[0.5, 0.9], regressor="kernel", random_state=0).fit(X, Y)
    explorer = explore(several)
    controls = explorer.controls
    assert controls.tau.value == 0.9 and "tau = 0.50, 0.90" in explorer.status.value
    controls.tau.value = 0.7
    controls.tau.value = 0.9  # back to what was fitted
    assert explorer.exploration.taus == (0.5, 0.9)


def test_a_flow_that_fails_says_why(explorer, model, monkeypatch):
    def fail(self, task):
        raise ValueError("no <luck>")

    monkeypatch.setattr(ClosedFlow, "run", fail)
    explorer.controls.tau.value = 0.6
    assert "no &lt;luck&gt;" in explorer.status.value
    assert explorer.exploration.taus == (0.95,)


def test_with_diffusion_maps(widgets):
    flow = DiffusionFlow(n_components=16)
    stepwise = IteratedDiffusionMap(2, regressor="kernel", flow=flow, random_state=0).fit(X, Y)
    again = stepwise.run_flow(0.95)
    for known, found in zip(stepwise.flow_.embeddings(), again.embeddings(), strict=True):
        assert np.array_equal(known, found)
    explorer = explore(stepwise)
    explorer.controls.tau.value = 0.6
    last = stepwise.run_flow(0.6).embeddings()[-1]
    assert np.array_equal(explorer.exploration.points[2], last[stepwise.map_.rows.inverse])
    assert not np.array_equal(explorer.exploration.points[1], stepwise.embeddings_[1])
    assert "idm-explorer" in explorer_html(stepwise)


def test_colours(model, branched):
    names = list(Exploration(model).colours)
    assert names[:3] == ["angle of the feature", "feature 0", "feature 1"] and len(names) == 9
    found, branch = Exploration(branched).colours, branched.branch_
    assert list(found)[:3] == ["feature", "held-out feature", "branch"]
    assert found["branch"].kind == "label" and np.array_equal(found["branch"].values, branch)
    assert all(np.ptp(found["branch"].codes[branch == b]) == 0 for b in np.unique(branch))


def test_the_feature_is_that_of_the_fit(branched):
    points, feature, _ = feature_example("torus x", 1200, random_state=0)
    assert np.allclose(Exploration(branched).features, feature)
    assert np.array_equal(Exploration(branched, feature**2).features, feature**2)


def test_branches_are_told(branched):
    e = Exploration(branched)
    middle = int(np.argmin(np.linalg.norm(e.points[0] - [0, 2, 1], axis=1)))
    assert e.on_branch(middle, e.near(3, middle, 50)) == 50
    assert "50 of them lie on its branch" in description(e, 3, middle, 50)
    assert '"branch"' in explorer_html(branched)
    # the last view has the feature across, and the two sides of the hole apart
    across, up = e.views[-1][:, :2].T
    assert np.corrcoef(across, e.features[:, 0])[0, 1] > 0.99
    between = np.abs(e.features[:, 0]) < 0.5
    side = up[between] > 0
    assert {np.mean(side[e.branch[between] == b]) for b in np.unique(e.branch[between])} == {0, 1}


def test_colours_are_named_like_the_columns(widgets):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["east", "north", "up"])
    named = IteratedDiffusionMap(1, regressor="kernel", random_state=0).fit(frame, Y[:, 0])
    explorer = explore(named)
    assert explorer.controls.colour.options[-3:] == ("east", "north", "up")
    explorer.controls.tau.value = 0.5
    assert list(explorer.exploration.colours)[-3:] == ["east", "north", "up"]


def test_rows_have_the_names_that_they_were_given(model, widgets):
    names = [f"patient {k}" for k in range(len(X))]
    explorer = explore(model, names=names)
    explorer.controls.point.value = 28
    assert "neighbours of patient 28 (row 28) the feature" in explorer.status.value
    assert explorer.controls.point.options[28] == ("patient 28 (row 28)", 28)
    thin = Exploration(model, names=names, max_points=100)
    assert len(thin.rows) == 100 and np.allclose(thin.features, Y[thin.rows])
    assert np.array_equal(thin.points[1], model.embeddings_[1][thin.rows])
    assert thin.names == [f"patient {k} (row {k})" for k in thin.rows]
    page = explorer_html(model, names=["</script>", *names[1:]])
    assert "patient 1 (row 1)" in page and page.count("</script>") == 1
    refuses("one name for each of the 300 rows, got 2", lambda: explore(model, names=["a", "b"]))


def test_the_picture_says_what_its_colours_mean(model, branched):
    e = Exploration(model)
    assert 7 not in e.near(1, 7, 5) and len(e.near(1, 7, 5)) == 5  # a row is no neighbour of itself
    for name, words in (
        ("column 1", [f"{end(X[:, 1]):.3g}" for end in (np.min, np.max)]),
        ("angle of the feature", ["-180°", "180°"]),
    ):
        colours, ends = bar_of(e.colours[name])
        assert ends == words
        assert {tuple(c) for c in colours} == {tuple(c) for c in e.colours[name].palette}
        assert draw(e, 1, 0, 10, name).axes[2].get_ylabel().startswith(name)
    found = Exploration(branched).colours["branch"]
    shown, names = bar_of(found)
    assert np.array_equal(shown[found.values], found.colours)
    assert names == [str(b) for b in range(branched.branches_.n_branches)]
    legend = draw(Exploration(branched), 1, 0, 10, "branch").axes[1].get_legend()
    assert len(legend.texts) == len(names)


def test_without_widgets_the_notebook_says_what_to_install(explorer):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        bundle = explorer._repr_mimebundle_()
        explorer.exploration.model._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "pip install 'idm_nb[notebook]'" in bundle["text/plain"] == repr(explorer)


def test_rows_that_coincide_and_one_column():
    twice = IteratedDiffusionMap(1, regressor="ridge").fit(np.r_[X, X[:50]], np.r_[Y, Y[:50]])
    e = Exploration(twice)
    assert len(e.rows) == 350 and np.array_equal(e.points[1], twice.embedding_)
    assert 303 in e.near(1, 3, 5) and 3 not in e.near(1, 3, 5)
    line = IteratedDiffusionMap(1, regressor="ridge").fit(X[:, :1], Y[:, 0])
    assert "idm-explorer" in explorer_html(line)


def test_a_model_from_a_file(model, tmp_path):
    model.save(tmp_path / "model.npz")
    assert explorer_html(idm_nb.load(tmp_path / "model.npz")) == explorer_html(model)


def test_ipywidgets_absent(model, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"needs ipywidgets.*pip install 'idm_nb\[notebook\]'"):
        explore(model)
    save_explorer(model, tmp_path / "page.html")


@pytest.mark.parametrize(
    "made, error, words",
    [
        (DiffusionMap(2), TypeError, "model must be a fitted IteratedDiffusionMap, got Diffusion"),
        (make_pipeline(StandardScaler(), IteratedDiffusionMap(1)), TypeError, r"pipeline\[-1\]"),
        (IteratedDiffusionMap(), NotFittedError, "not fitted"),
    ],
)
def test_wrong_models(made, error, words):
    with pytest.raises(error, match=words):
        save_explorer(made if error is NotFittedError else made.fit(X, Y), "never.html")


def test_bad_arguments(model, widgets, tmp_path):
    refuses("y has 299 rows but X has 300", lambda: explore(model, Y[:-1]))
    refuses("neighbors must be an integer, 2 or more, got 1", lambda: explore(model, neighbors=1))
    with pytest.raises(ValueError, match="max_points must be an integer, 4 or more"):
        save_explorer(model, tmp_path / "page.html", max_points=1)
    assert not list(tmp_path.iterdir())


def test_page(model, tmp_path):
    options = dict(title="A <torus> for $5", max_points=200, max_columns=1)
    save_explorer(model, tmp_path / "page.html", **options)
    page = (tmp_path / "page.html").read_text()
    assert "A &lt;torus&gt; for $5" in page and "http" not in page and "NaN" not in page
    assert '"column 0"' in page and '"column 1"' not in page
    assert page.count("<label>") == page.count("</label>") == 3  # every control has one
    assert page.count('aria-label="') == page.count("<canvas") + 2  # and every picture
    save_explorer(model, tmp_path / "again.html", **options)
    assert (tmp_path / "again.html").read_text() == page


def run_script(page, tmp_path, program):
    "What a `program` of JavaScript prints as JSON; `data` are those of the `page`."
    node = shutil.which("node")
    if node is None:
        pytest.skip("node runs the script of the page")
    given = json.JSONDecoder().raw_decode(page.partition(", unpack(")[2])[0]
    text = f"{page_file('explorer.js')}\nconst data = unpack({json.dumps(given)});\n{program}"
    (tmp_path / "page.js").write_text(text)
    run = subprocess.run([node, tmp_path / "page.js"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_the_script_says_what_python_says(branched, tmp_path):
    e, last = Exploration(branched, max_points=500), len(branched.embeddings_) - 1
    near, sentences, others, flat = run_script(
        explorer_html(branched, max_points=500, neighbors=30),
        tmp_path,
        """const rows = [3, 77, 400], list = values => Array.from(values);
        console.log(JSON.stringify([rows.map(i => list(near(data, 1, i))),
          rows.map(i => description(data, i)), rows.map(i => otherWays(data, i)),
          project(data.views[1], 0, 90)]));""",
    )
    assert np.abs(np.array(flat) - e.views[1]).max() < 1e-4  # coordinates of 16 bits
    for point, own, text, ways in zip((3, 77, 400), near, sentences, others):
        assert own == e.near(last, point, 30).tolist()
        told = [e.spread(point, e.near(i, point, 30)) for i in (last, 0)]
        assert f"by {told[0]:.3f} standard deviations; in the data, by {told[1]:.3f}" in text
        assert f"{e.on_branch(point, e.near(last, point, 30))} of them lie on its branch" in text
        assert all(e.branch[way] != e.branch[point] for way in ways)
        gaps = np.abs(e.features[ways] - e.features[point])
        assert np.all(gaps < 0.11 * e.features.std())


def test_rows_that_are_pictures(tmp_path):
    from idm_nb.datasets import rotated_digits

    pixels, angle, _ = rotated_digits(7, n_angles=2)
    model = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(pixels, angle)
    page = explorer_html(model, image=(8, 8), max_columns=0)
    shown = run_script(page, tmp_path, "console.log(JSON.stringify([...data.pictures]));")
    assert np.abs(np.reshape(shown, pixels.shape) / 255 - pixels).max() < 0.01
    refuses(r"image=\(8, 9\) needs 72 columns, got 64", lambda: explorer_html(model, image=(8, 9)))
    ax = model.plot(image=(8, 8))
    assert len(ax.images) >= 10 and ax.images[0].get_array().shape == (8, 8)
