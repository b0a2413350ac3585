"""The report: what a colleague reads first must be right."""

import base64
import json
import re

import numpy as np
import pytest

from idm_nb import IteratedDiffusionMap, TableMap
from idm_nb.datasets import feature_example
from idm_nb.tables.report import draw_map
from idm_nb.tables.roles import split_rows

pd = pytest.importorskip("pandas")
KERNEL = IteratedDiffusionMap(regressor="kernel")


def data_of(page):
    "The data of the explorer of a page."
    return json.JSONDecoder(parse_constant=pytest.fail).raw_decode(page.partition(", unpack(")[2])[
        0
    ]


WORDS = """On rows not used for fitting|one value can be reached in different ways|The map</h2>|The rows as points
Predicted and true</h2>|1 row is novel|What it depends on</h2>|Ways to the same value</h2>|Branch 2 against 1
What to do next</h2>|Look at the novel row, data row
The columns</summary>|What the estimate consists of<"""


def test_the_report_answers_in_order():
    X, y, _ = feature_example("torus x", 1000, random_state=0)
    table = pd.DataFrame(X, columns=["<a>", "b", "c"]).assign(**{"<x>": y[:, 0]})
    kept = split_rows(1000, 0.2, None, 1)
    table.loc[np.flatnonzero(kept)[0], ["<a>", "b", "c"]] = 30  # a novel row
    model = TableMap("<x>", model=KERNEL, scale="none", random_state=1).fit(table)
    page, fitted = model.report(), model.fitted_
    places = [page.index(word) for word in re.split(r"[|\n]", WORDS)]
    assert places == sorted(places) and "<x>" not in page and "://" not in page
    # errors, relevance, and the effect of each of two columns; the map is drawn by the script
    above = model.relevance().above_chance.sum()
    assert (
        page.count("<img")
        == page.count('<img alt="')
        == page.count("<figure>") - 1 + page.count('<figure class="large"')
        == 2 + above
    )
    # a novel row does not change the error of the others
    missed = (fitted.placed_kept.values - fitted.kept.truth)[~fitted.placed_kept.novel]
    size = f"{np.sqrt(np.mean(missed**2)):.3g}"
    assert f"typically off by {size};" in page and f"not novel is {size} for" in page
    # the explorer has each row, and rows that are alike on its branch
    found = data_of(page)
    assert len(found["names"]) == 1000 and found["feature"] == "<x>" and "b" in found["columns"]
    name, values = found["names"][0], np.array(found["values"], dtype=float)
    assert values[0] == pytest.approx(table["<x>"][int(name) - 1], rel=0.01)
    near = np.frombuffer(base64.b64decode(found["near"][1]), "<u2").reshape(1000, 10)
    gap = np.abs(values[near] - values[:, None])[np.setdiff1d(np.arange(1000), found["novel"])]
    assert np.quantile(gap, 0.99) < 0.2
    assert found["known"] == len(fitted.rows) and len(found["novel"]) >= 1
    marks = np.frombuffer(base64.b64decode(found["marks"]), "<i2").reshape(1000, -1)
    assert marks.shape[1] == len(found["cells"]) == len(found["columns"])


def test_one_branch_has_no_panel_without_a_message():
    X, y, _ = feature_example("annulus radius", 300, random_state=0)
    y = np.where(np.arange(300) % 5, y[:, 0], np.nan)
    word = np.where(np.arange(300) % 7, "NaNometer", "</script>")
    table = pd.DataFrame(X, columns=["a", "b"]).assign(word=word, radius=y)
    page, of_log = (
        TableMap("radius", model=KERNEL, feature_transform=how, random_state=0).fit(table).report()
        for how in ("none", "log")
    )
    assert "grey band" in page and "grey band" not in of_log  # which has no band
    assert "there is one branch" in page and "different ways" not in page
    assert "joins" not in page and "Branch 1" not in page and "mostly" not in page
    # errors, relevance, and two effects; no table of branches
    assert page.count("<img") == 4 and "joins" not in page
    data = data_of(page)
    told = [data[name] for name in ("names", "values", "predicted", "errors", "cells", "titles")]
    assert "nan" not in re.sub("[Nn]a[Nn]ometer", "", json.dumps(told)).lower()
    assert {"NaNometer", "</script>"} <= {cell for column in data["cells"] for cell in column}


def test_a_branch_without_support_is_a_candidate_everywhere(monkeypatch):
    from idm_nb.branches import support

    X, y, _ = feature_example("torus x", 1000, random_state=0)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(x=y[:, 0])
    fit = lambda: TableMap("x", model=KERNEL, scale="none", random_state=0).fit(table)
    supported, before = support.supported, fit()
    monkeypatch.setattr(support, "supported", lambda found, _: supported(found, np.inf))
    model = fit()
    fitted, page = model.fitted_, model.report()
    assert before.fitted_.branches.n_branches > 1 == fitted.branches.n_branches
    assert fitted.branches.candidates
    assert "may be missed. A further branch is a candidate" in page
    assert "different ways" not in page and "joins" not in page
    assert (model.predict(table).branch == 0).all()
    assert "must_change" not in model.counterparts(table[:1])
    # coordinates keep apart what is said to be apart, and nothing else
    count = lambda found: sum("branch" in name for name in found.model_.get_feature_names_out())
    assert not count(model) and count(before) == before.fitted_.branches.n_branches


def test_a_branch_that_is_one_group_is_said_to_be_one(monkeypatch):
    monkeypatch.setattr("idm_nb.tables.table_map.SUPPORT", 0.0)  # all branches
    rng, n = np.random.default_rng(0), 400
    donor, a, b = rng.integers(0, 12, n), rng.uniform(0, 3, n), rng.normal(size=(2, n)) / 10
    table = pd.DataFrame({"donor": donor, "a": a, "b": b[0] + 6 * (donor == 5), "c": b[1]})
    table["y"] = a + 0.02 * rng.normal(size=n)
    options = dict(model=KERNEL, scale="none", holdout=0, random_state=0)
    model = TableMap("y", groups="donor", **options).fit(table)
    assert model.fitted_.branches.n_branches == 2 and [*model.fitted_.alone.values()] == [5]
    assert "(5) has the rows of one donor only" in model.report()
    # a fork is drawn over the prediction, which puts it where the feature has errors
    points = draw_map(model.fitted_).axes[0].collections[0].get_offsets().data
    assert np.corrcoef(points[:, 0], model.model_.map_.place(None).values[:, 0])[0, 1] > 0.999


def test_cautions_come_first():
    rng = np.random.default_rng(0)
    a = rng.uniform(size=120)
    table = pd.DataFrame({"a": a, "b": rng.normal(size=120), "double": 2 * a + 1, "y": a})
    page = TableMap("y", model=KERNEL, random_state=0).fit(table).report()
    caution = page.index('class="caution">')
    assert page.index("Read the cautions first") < caution < page.index("What it depends on</h2>")
    assert "can be computed from" in page[caution : caution + 200]
    assert "Settle the cautions at the top" in page[page.index("What to do next</h2>") :]


def test_rows_that_are_pictures_are_drawn_as_pictures():
    from idm_nb.datasets import rotated_digits

    pixels, angle, original = rotated_digits(3, n_angles=2)
    table = pd.DataFrame(pixels).add_prefix("pixel").assign(angle=angle, original=original)
    table.iloc[np.flatnonzero(split_rows(len(table), 0.2, original, 0))[0], :64] = 9.0  # novel
    table["pixel5"] = 7.0  # no data, but a pixel
    options = dict(groups="original", scale="none", random_state=0)
    model = TableMap("angle", model=KERNEL, **options).fit(table)
    page = model.report(image=(8, 8))
    data = data_of(page)
    shown = np.frombuffer(base64.b64decode(data["pictures"]), "u1").reshape(-1, 64)
    assert len(shown) == len(table) and data["image"] == [8, 8] and not data["columns"]
    assert model.fitted_.roles.pixels["pixel5"] == 7 and np.ptp(shown[:, 5]) == 0 < shown[0, 5]
    # errors, the novel row, and one picture of the relevance; no picture of single pixels
    assert page.count("<img") == 3 and "Novel rows" in page
    assert "No single column" not in page and "The pictures show" not in page
    with pytest.raises(ValueError, match=r"image=\(5, 8\) needs 40 columns, got 64"):
        model.report(image=(5, 8))


def test_numbers_that_differ_are_not_printed_alike():
    rng = np.random.default_rng(0)
    side, part = np.arange(240) % 2, rng.uniform(size=240)
    table = pd.DataFrame({"year": 2013.0 + side, "x": part + 10 * side})
    table["time"] = 2000 + 14 * part + 0.05 * rng.normal(size=240)
    model = TableMap("time", model=KERNEL, random_state=0).fit(table)
    assert "year (2013 against 2014)" in model.fitted_.contrast.sentences()[0]
    found = data_of(model.report())
    assert {"2013", "2014"} in [{*texts} for texts in found["cells"]]
    missed = np.array(found["values"], float) - np.sort(table.time.to_numpy())[:, None]
    assert np.abs(missed).min(axis=0).max() < 0.1  # 2012 is not written as 2010
