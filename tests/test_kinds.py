"""Kinds of columns that people bring: what is read, and the answer in the words of the feature.

Cells are made, or copied from public tables: weather stations (wind in degrees, months), the bicycle
rentals of Fanaee-T and Gama (hours, weekdays), air quality with detection limits, race results.
"""

import re

import anndata as ad
import numpy as np
import pandas as pd
import pytest

from idm_nb import IteratedDiffusionMap, TableMap, explore, reeb_graph
from idm_nb.command.command_line import main
from idm_nb.tables.cells import Style, typed
from idm_nb.tables.columns import circle_of, days_of, likely_groups, plan_of
from idm_nb.tables.reading import table_of

KERNEL = IteratedDiffusionMap(1, regressor="kernel")
RNG = np.random.default_rng(0)
N = 240
U = RNG.normal(size=N)
BASE = pd.DataFrame({"a": U + 0.1 * RNG.normal(size=N), "b": RNG.normal(size=N)})
HIGH = 10 * (U - U.min())

# name of the column, some cells, the numbers of the first two, and the unit
NUMBERS = {
    "limits": ("lead", ["<0.1", "0.5", "n.d.", "> 5"], (0.05, 0.5), ""),
    "limits with a blank": ("As", ["< 0.2", "1.5"], (0.1, 1.5), ""),
    "errors": ("m", ["3.1±0.2", "4 +- 1"], (3.1, 4), ""),
    "errors in brackets": ("m", ["3.1 (0.2)", "4.0(3)"], (3.1, 4), ""),
    "about": ("m", ["~3.1", "≈4"], (3.1, 4), ""),
    "powers": ("k", ["3.1x10^3", "2×10⁻³"], (3100, 0.002), ""),
    "units": ("c", ["12 ppm", "7.5 ppm"], (12, 7.5), ""),
    "units after a blank": ("heat", ["37 °C", "85 °C"], (37, 85), ""),
    "units at once": ("heat", ["37°C", "85°C"], (37, 85), ""),
    "a currency": ("price", ["$3.10", "$1200"], (3.1, 1200), ""),
    "percent": ("share", ["12%", "3.5 %"], (0.12, 0.035), ""),
    "ranges": ("age", ["20-29", "30-39", "75+"], (24.5, 34.5), ""),
    "ranges of a cut": ("income", ["[50, 75)", "(1.2e+03,2e+03]"], (62.5, 1600), ""),
    "of eight": ("score", ["3/8", "5/8"], (3, 5), ""),
    "marks in words": ("n", ["under 5", "65 and over", "ca. 7"], (2.5, 65), ""),
    "ranges of money": ("pay", ["$50 - $75", "$150+"], (62.5, 150), ""),
    "in two units": ("mass", ["0.15Kg (0.33 lb)", "2.5Kg (5.5 lb)"], (0.15, 2.5), ""),
    "feet and inches": ("tall", ["6'3\"", "5'11\""], (6.25, 5 + 11 / 12), "feet"),
    "feet in words": ("tall", ["6 ft 3 in", "5 ft"], (6.25, 5), "feet"),
    "degrees": ("lat", ["34°12'30\"", "35°6'"], (34 + 12.5 / 60, 35.1), "degrees"),
    "hours of a clock": ("at", ["10am", "12:30 p.m."], (10, 12.5), "hours"),
    "many minutes": ("runtime", ["PT100M", "PT45M"], (6000, 2700), "seconds"),
    "weekdays": ("day", ["Sat", "Sun", "Mon", "Thur"], (5, 6), "weekdays"),
    "winds": ("gust", ["N", "SSW", "E", "NE"], (0, 9), "directions"),
    "clock": ("at", ["08:30", "23:45"], (8.5, 23.75), "hours"),
    "half days": ("at", ["3:45 PM", "12:15 AM"], (15.75, 0.25), "hours"),
    "a race": ("time", ["2:08:44", "26:30:00"], (2 + 8 / 60 + 44 / 3600, 26.5), "hours"),
    "a digit of seconds": ("time", ["4:5.1", "4:33.2"], (4 + 5.1 / 60, 4 + 33.2 / 60), "minutes"),
    "some tenths of seconds": ("time", ["4:33.2", "4:05"], (4 + 33.2 / 60, 4 + 5 / 60), "minutes"),
    "minutes": ("lap", ["1:23.456", "1:20.1"], (1 + 23.456 / 60, 1 + 20.1 / 60), "minutes"),
    "ISO 8601": ("runtime", ["PT1H30M", "P1D"], (5400, 86400), "seconds"),
    "hours and minutes": ("runtime", ["1h 30m", "45min"], (5400, 2700), "seconds"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_cells_are_numbers(name):
    column, cells, numbers, unit = NUMBERS[name]
    found, problem = typed(pd.Series(cells, name=column), Style())
    assert problem is None and np.allclose(found[:2], numbers)
    form = found.attrs["form"]
    assert form.unit == unit and len(form.words(found.to_numpy())) == len(cells)
    assert not name.startswith("units") or form.words(found.to_numpy()).tolist() == cells
    if not form.plain:  # what is written is read again
        written = pd.Series(form.words(found.to_numpy()), name=column)
        assert np.allclose(typed(written, Style(forms={column: form}))[0], found, rtol=1e-3)


MONTHS = {
    "%Y-%m": ["2000-01", "2011-12"],
    "%m/%Y": ["03/2024", "11/2023"],
    "%b %Y": ["Mar 2024", "Dec 2023"],
    "%B %Y": ["March 2024", "December 2023"],
    "%b-%y": ["Jan-49", "Dec-60"],
    "%YQ%q": ["2000Q1", "2001Q4"],
    "%Yq%q": ["1960q1", "1961q4"],
    "%Y-Q%q": ["1959-Q1", "2009-Q3"],
    "%G-W%V": ["2020-W53", "2021-W01"],
}


DATES = {  # also beyond what nanoseconds hold, 1677 to 2262
    "%m/%d/%y %H:%M": ["08/06/20 18:57", "07/31/20 16:50"],
    "%d/%m/%y": ["01/02/85", "31/12/99"],
    "%Y-%m-%d": ["1588-08-08", "1648-10-24"],
    "%d.%m.%Y": ["31.12.1066", "14.10.2410"],
    "%b %d, %Y": ["Sep 02, 1666", "Nov 05, 2605"],
    "%Y-%m-%dT%H:%M:%S": ["1572-11-11T18:30:00", "2409-01-01T00:00:05"],
}


@pytest.mark.parametrize("form", {**MONTHS, **DATES})
def test_dates_months_quarters_and_weeks_are_dates_and_back(form):
    cells = {**MONTHS, **DATES}[form]
    found, _ = typed(pd.Series(cells, name="q"), Style())
    assert plan_of(found).kind == "date" and found.attrs["form"].pattern == form
    assert list(found.attrs["form"].words(days_of(found))) == cells


MIXED = {  # of clinical trials, songs and field books: parts are missing, months are words
    "%Y-%m-%d": ["2014-02", "2014-03-06", "2013-08-09"],
    "%Y-%m-%dT%H:%M": ["2014-07-02T11:45", "2014-09-15T10:00", "2013-02-18"],
    "%Y": ["2016", "2015", "2019-07-19"],
    "%d %B %Y": ["11 May 1875", "01 June 1875", "08 Jun 1875"],
}


@pytest.mark.parametrize("form", MIXED)
def test_dates_of_a_column_may_lack_parts(form):
    found, _ = typed(pd.Series(MIXED[form], name="day"), Style())
    assert found.notna().all() and found.attrs["form"].pattern == form
    assert (found.dt.year.astype(str) == [re.search(r"\d{4}", c)[0] for c in MIXED[form]]).all()
    months = pd.Series(["05/13/2024", "13/05/2024"], name="day")  # which is first?
    assert typed(months, Style())[0].dtype == object


OLD = np.array(["1605-11-05", "2345-06-07"], "datetime64[s]")
TYPED = {
    "pandas": OLD,
    "periods": pd.PeriodIndex(OLD.astype(str), freq="D"),
    "pyarrow": pd.array(OLD, dtype="timestamp[s][pyarrow]"),
    "time zones": pd.Series(OLD).dt.tz_localize("UTC"),
}


@pytest.mark.parametrize("kind", TYPED)
def test_typed_dates_of_any_century_come_back(kind):
    column, _ = typed(pd.Series(TYPED[kind], name="day"), Style())
    words = column.attrs["form"].words(days_of(column))
    assert (words.astype("datetime64[s]") == OLD).all()


def test_a_feature_of_old_dates_is_answered_in_dates(tmp_path):
    day = pd.Series(np.datetime64("1600-01-01") + (3000 * HIGH).astype("timedelta64[D]"))
    table = BASE.assign(day=day.dt.strftime("%d.%m.%Y"))
    model = TableMap("day", model=KERNEL, random_state=0).fit(table)
    model.report(tmp_path / "report.html")
    said = model.predict(table).predicted_day
    off = typed(said, Style())[0] - typed(table.day, Style())[0]
    assert off.dt.days.abs().median() < 0.1 * day.std().days


NO_NUMBERS = [
    ["1st", "2nd"],
    ["4:5", "3:2"],
    ["2013-14", "2014-15"],
    ["3-1", "5-2"],
    ["0/0", "0/1"],
    ["T1", "T2"],
    ["2013FAIL", "2012PASS"],
    ["P02", "P03"],  # plots
    ["P0001", "P0002"],
    ["(3, 5)", "(4, 7)"],
]


@pytest.mark.parametrize("cells", NO_NUMBERS)
def test_codes_stay_words(cells):
    found, problem = typed(pd.Series(cells, name="q"), Style())
    assert problem is None and found.tolist() == cells


def test_two_numbers_in_a_cell_are_refused_with_a_remedy_that_works():
    table = pd.DataFrame({"bp": [f"{110 + k}/{70 + k}" for k in range(60)], "y": np.arange(60.0)})
    problem = table_of(table).problems["bp"]
    assert "type reading={'words': ['bp']}" in problem
    assert not table_of(table, Style(words=["bp"])).problems


def test_cells_at_a_limit_are_marked_and_said():
    lead = np.where(HIGH < 20, "<20", HIGH.round(1).astype(str))
    table = BASE.assign(lead=lead, y=np.maximum(HIGH, 10))
    model = TableMap("y", model=KERNEL, random_state=0).fit(table)
    kinds = {plan.name: plan.kind for plan in model.fitted_.roles.plans}
    assert kinds["lead"] == "number" and kinds["lead below a limit"] == "yes or no"
    told = "column 'lead': '<20' is read as 10, half of the limit, and marked"
    assert told in " ".join(model.fitted_.roles.notes)
    alone = model.predict(table[lead != "<20"])  # without a cell at the limit
    assert np.allclose(alone.predicted_y, model.predict(table)[lead != "<20"].predicted_y)
    found = TableMap("lead", model=KERNEL, random_state=0).fit(table)  # its mark is no data
    assert "lead below a limit" not in found.fitted_.roles.data


TIMES = {
    "day": ("2024-03-01", "2024-02-30", "date"),
    "start": ("12:45", "noon", "number"),
    "race": ("2:08:44", "59:10", "number"),
    "run": ("1h 30m", "DNF", "number"),
    "lead": ("<0.5 ppm", "lost", "number"),
}


@pytest.mark.parametrize("name", TIMES)
def test_an_odd_cell_among_times_is_named_with_a_remedy_that_works(name):
    cell, odd, what = TIMES[name]
    cells = [re.sub(r"\d(?=\D*$)", str(k), cell) for k in range(1, 9)]
    table = pd.DataFrame({name: cells[:4] + [odd] + cells[4:]})
    told = (
        f"holds {odd!r} at data row 5, which is not a {what}; type reading={{'missing': [{odd!r}]}}"
    )
    assert told in table_of(table).problems[name]
    read = table_of(table, Style(missing=[odd]))
    assert not read.problems and read.frame[name].isna().sum() == 1 and read.forms[name]


@pytest.mark.parametrize("cells", [["1.234", "2.5"], ["0.5", "12.34"], ["1.234", "12.3456"]])
def test_an_option_that_was_typed_is_not_offered_again(cells):
    for style in (Style(thousands="."), Style(decimal=",")):
        problem = typed(pd.Series(cells, name="a"), style)[1]
        assert "write all decimals in one way" in problem and "thousands" not in problem


def test_errors_with_a_unit_keep_their_digits():
    cells = [f"{x:.1f} kg" for x in HIGH]
    model = TableMap("m", model=KERNEL, random_state=0).fit(BASE.assign(m=cells))
    said = model.predict(BASE).standard_error.str.removesuffix(" kg").astype(float)
    assert np.allclose(said, model.place(BASE).errors[:, 0], rtol=1e-5)


def test_a_word_among_numbers_of_one_new_row_is_a_gap_that_is_named():
    model = TableMap("y", model=KERNEL, random_state=0).fit(BASE.assign(y=HIGH))
    new = model.typed(pd.DataFrame({"a": ["rotary"], "b": [0.0]}))
    assert "column 'a': no number, such as 'rotary'; they are taken as gaps" in " ".join(new.notes)
    assert np.isfinite(model.predict(new).predicted_y).all()
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(HIGH, "D")
    table = BASE.assign(a=day.astype(str), y=HIGH)
    model = TableMap("y", model=KERNEL, random_state=0).fit(table)
    new = model.typed(table[:3].assign(a=["2024-01-02", "unknown", "2024-01-09"]))
    assert "column 'a': no date, such as 'unknown'; they are taken as gaps" in " ".join(new.notes)
    assert np.isfinite(model.predict(new).predicted_y).all()


CIRCLES = {
    "wind_deg": (RNG.uniform(0, 360, N), 360),
    "Wind Direction": (RNG.integers(0, 36, N) * 10.0, 360),
    "longitude (deg)": (RNG.uniform(-180, 180, N), 360),
    "hr": (np.arange(N) % 24, 24),
    "mnth": (np.arange(N) % 12 + 1, 12),
    "weekday": (np.arange(N) % 7, 7),
    "doy": (np.arange(N) * 1.5 + 1, 365.2425),
    "hour": (np.arange(N) % 25, None),  # of a study
    "month": (np.arange(N) % 10, None),
    "temp_deg": (RNG.uniform(-5, 35, N), None),
    "x": (RNG.uniform(0, 360, N), None),
}


@pytest.mark.parametrize("name", CIRCLES)
def test_circles_are_found_where_it_is_safe(name):
    values, turn = CIRCLES[name]
    assert circle_of(pd.Series(values, name=name)) == turn


@pytest.mark.parametrize("given", [None, *({"wind_deg": turn} for turn in (360, "degrees", None))])
def test_a_circle_of_data_has_no_end(given):
    wind = np.random.default_rng(1).uniform(0, 360, 400)
    table = pd.DataFrame({"wind_deg": wind, "y": np.cos(np.radians(wind - 90))})
    model = TableMap("y", circular=given, model=KERNEL, random_state=0).fit(table)
    ends = model.transform(pd.DataFrame({"wind_deg": [359.5, 0.5, 180.0]})).to_numpy()
    near, far = np.linalg.norm(ends[1:] - ends[0], axis=1)
    assert (near < 0.2 * far) == (given != {"wind_deg": None})
    assert model.relevance().column.tolist() == ["wind_deg"]
    told = "circular={'wind_deg': None}" in "\n".join(model.fitted_.roles.lines())
    assert told == (given is None)


STAMP = pd.Timestamp("2024-01-01") + pd.to_timedelta(6 * HIGH.astype(int), "D")
ORDER = ["low", "mid", "high", "top"]
FEATURES = {
    "date": (STAMP.strftime("%d/%m/%Y"), r"\d\d/\d\d/202\d", "days"),
    "month": (STAMP.to_period("M"), r"202\d-\d\d", "days"),
    "race": ([f"{int(h)}:{int(h % 1 * 60):02}:00" for h in HIGH], r"-?\d+:\d\d:\d\d", ""),
    "share": ([f"{x:.1f}%" for x in HIGH], r"-?[\d.]+%", "%"),
    "mass": ([f"{x:.1f} kg" for x in HIGH], r"-?[\d.]+ kg", "kg"),
    "grade": (pd.cut(U, 4, labels=ORDER), "low|mid|high|top", "grades"),
}


@pytest.mark.parametrize("name", FEATURES)
def test_answers_are_in_the_words_of_the_feature(name, tmp_path):
    cells, pattern, unit = FEATURES[name]
    table = BASE.assign(**{name: cells})
    model = TableMap(name, model=KERNEL, random_state=0).fit(table)
    row = table[:1].drop(columns=name)
    found = model.predict(table)[f"predicted_{name}"], model.alike(row)[name]
    for column in (*found, model.counterparts(row)[name]):
        assert column.astype(str).str.fullmatch(pattern).all(), column
    page = model.report()
    assert f"{unit}; the mean of all rows" in page and found[0][0] in page
    table.to_csv(tmp_path / "t.csv", index=False)
    order = ["--order", *ORDER] if name == "grade" else []
    fast = "--quiet --iterations 1 --regressor kernel".split()
    given = [str(tmp_path / "t.csv"), "--feature", name, "--out", str(tmp_path / "o")]
    assert main(["fit", *given, *order, *fast]) == 0
    written = pd.read_csv(tmp_path / "o" / "predictions.csv", dtype=str)
    for column in (name, f"predicted_{name}"):
        assert written[column].str.strip().str.fullmatch(pattern).all()


@pytest.mark.parametrize("option, turn", [("hours", 24), ("months", 12), ("half turns", 180)])
def test_a_feature_on_a_circle_of_any_unit(option, turn):
    value = np.random.default_rng(0).uniform(0, turn, 300)
    angle = 2 * np.pi * value / turn
    table = pd.DataFrame({"x": np.cos(angle), "z": np.sin(angle), "when": value})
    for given in ({"circular": {"when": turn}}, {"circular": {"when": option}}, {"angle": option}):
        model = TableMap("when", model=KERNEL, random_state=0, **given).fit(table)
        off = np.abs(model.predict(table).predicted_when - value)
        assert np.minimum(off, turn - off).median() < turn / 1000


def test_a_feature_of_months_is_answered_from_january_to_december():
    month = np.arange(300) % 12 + 1
    table = pd.DataFrame({"x": np.cos(month * np.pi / 6), "z": np.sin(month * np.pi / 6)})
    model = TableMap("month", model=KERNEL, random_state=0).fit(table.assign(month=month))
    assert np.allclose(model.predict(table).predicted_month, month, atol=0.1)


@pytest.mark.parametrize("sd", [0.3, 1.0])
def test_a_skewed_feature_has_lopsided_intervals(sd):
    shares = []
    for seed in range(7, 11):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(1200, 4)), columns=list("abcd"))
        middle = table.a + 0.5 * table.b
        y = np.exp(middle + sd * rng.normal(size=1200))
        model = TableMap("y", model=KERNEL, holdout=0).fit(table.assign(y=y)[:400])
        assert "feature_transform='none'" in " ".join(model.fitted_.roles.notes)
        new = model.predict(table[400:])
        inside = (new.lower_90 <= y[400:]) & (y[400:] <= new.upper_90)
        exact = np.abs(np.log(y[400:]) - middle[400:]) <= 1.645 * sd  # by the law of the data
        far = model.predict(table[400:402] + 50)
        assert (far.predicted_y < 2 * y[:400].max()).all() and (
            far.upper_90 > far.predicted_y
        ).all()
        own = pd.DataFrame({"own": inside, "exact": exact})
        shares.append(own.groupby(pd.qcut(y[400:], 3, labels=False)).mean())
    shares = sum(shares) / len(shares)
    assert (shares.own > shares.exact - 0.05).all() and abs(shares.own.mean() - 0.9) < 0.03


def test_as_many_new_rows_lie_above_an_interval_as_below():
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.normal(size=(2400, 2)), columns=list("ab"))
    y = table.a + rng.gamma(1, 1, 2400)  # lopsided, and no number for a logarithm
    model = TableMap("y", model=KERNEL, holdout=0).fit(table.assign(y=y)[:400])
    new = model.predict(table[400:])
    sides = np.mean(y[400:] < new.lower_90), np.mean(y[400:] > new.upper_90)
    assert np.allclose(sides, 0.05, atol=0.03)  # 20 of 400 rows, three standard deviations


def test_a_table_has_what_the_estimator_has():
    table = BASE.assign(y=HIGH, count=RNG.integers(0, 3, N))
    one = TableMap("y", model=KERNEL, random_state=0).fit(table, "count")
    other = TableMap("y", ignore=["count"], model=KERNEL, random_state=0)
    other.fit(table, sample_weight=table["count"].to_numpy())
    assert one.verdict_.r2 == other.verdict_.r2 and "count" not in one.fitted_.roles.data
    assert reeb_graph(one).n_loops == 0 and explore(one) is not None


def test_cells_of_files_have_layers_embeddings_and_orders(tmp_path):
    obs = pd.DataFrame({"t": HIGH}, map("c{}".format, range(N)))
    cells = ad.AnnData(np.c_[U, BASE].astype("f4"), obs)
    cells.layers["twice"], cells.obsm["X_scVI"] = 2 * cells.X, BASE.to_numpy()
    cells.obs["stage"] = pd.Categorical(pd.cut(U, 3, labels=["E9", "E10", "E11"]), ordered=True)
    cells.write_h5ad(tmp_path / "c.h5ad")
    for reading, data in ({"embedding": "X_scVI"}, "X_scVI1"), ({"layer": "twice"}, "0"):
        model = TableMap("stage", model=KERNEL, reading=reading, random_state=0)
        model.fit(tmp_path / "c.h5ad")
        assert model.fitted_.roles.data[0] == data
        assert {*model.predict(tmp_path / "c.h5ad").predicted_stage} <= {"E9", "E10", "E11"}
    cells.var_names = ["one", "one", "one"]
    cells.write_h5ad(tmp_path / "c.h5ad")
    with pytest.raises(ValueError, match="genes one occur more than once"):
        TableMap("t", reading={"embedding": "X"}).fit(tmp_path / "c.h5ad")


def test_zeros_of_counts_are_no_gaps(tmp_path):
    rng = np.random.default_rng(0)
    genes = rng.poisson(3 * np.exp(np.outer(U, np.arange(8)) / 8)).astype("f4")
    cells = ad.AnnData(genes, pd.DataFrame({"t": U}, map("c{}".format, range(N))))
    cells.write_h5ad(tmp_path / "c.h5ad")
    model = TableMap("t", model=KERNEL, reading={"counts": True}, random_state=0)
    cautions = model.fit(tmp_path / "c.h5ad").verdict_.cautions
    assert not [text for kind, text in cautions if kind == "code"]


@pytest.mark.parametrize("unit", [1e-200, 1e-120, 1e80, 1e95])
@pytest.mark.parametrize("name", "Xy")
def test_units_that_are_no_numbers_are_refused_with_a_remedy_that_works(unit, name):
    given = {"X": BASE.to_numpy(), "y": U}
    given[name] = given[name] * unit
    with pytest.raises(ValueError, match=f"pass {name} / ") as told:
        KERNEL.fit(**given)
    given[name] = given[name] / float(str(told.value).split("/ ")[1])
    assert IteratedDiffusionMap(1, regressor="kernel").fit(**given).verdict_.r2 > 0.9


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e80])
def test_columns_of_a_table_have_any_unit(unit):
    table = BASE.assign(a=unit * BASE.a, y=U)
    model = TableMap("y", model=KERNEL, random_state=0).fit(table)
    assert model.verdict_.r2 > 0.9 and model.relevance_.values[0] > 0.5


def test_a_size_of_a_sample_names_no_groups():  # as in polls, nearly all of its values differ
    polls = pd.DataFrame({"rep_sample": [232, 597, 232, 410], "mouse": [1, 1, 2, 2]})
    assert likely_groups(polls, ["rep_sample"])[0] is None
    assert likely_groups(polls, list(polls))[0] == "mouse"


def test_marks_of_gaps_may_be_the_usual_ones():
    table = table_of({"x": ["1", "NA", "-999", "2"]}, Style(missing=["NA", -999]))
    assert table.frame.x.isna().tolist() == [False, True, True, False]
    assert "2 in 'x'" in table.notes[0]
