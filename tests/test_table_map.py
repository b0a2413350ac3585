"""`TableMap`: raw tables in Python, from the encoder to counterparts."""

import re
import subprocess
import sys

import numpy as np
import pytest
from book import refuses
from sklearn.base import clone
from sklearn.datasets import load_wine

from idm_nb import IteratedDiffusionMap, TableMap

pd = pytest.importorskip("pandas")
KERNEL = IteratedDiffusionMap(1, regressor="kernel")


def couplings(seed=0, n=200):
    "Rates of couplings: words and numbers with gaps, days, and a truth value that does not matter."
    rng = np.random.default_rng(seed)
    ligand, heat = rng.choice(["XPhos", "SPhos", "dppf"], n), rng.uniform(20, 100, n)
    table = {"ligand": ligand, "base": rng.choice(["K3PO4", "Cs2CO3", None], n)}
    table |= {"celsius": np.where(np.arange(n) % 20, heat.round(2), np.nan)}
    table |= {"day": pd.date_range("2024-01-01", periods=n), "wet": rng.uniform(size=n) < 0.5}
    rate = np.where(ligand == "dppf", 2, 1) * heat + rng.normal(size=n)
    return pd.DataFrame({**table, "rate": rate.round(2)})


TABLE = couplings()
NEW = TABLE.drop(columns="rate")[:9]


def fit(table, feature="rate", **options):
    return TableMap(feature, random_state=0, **{"model": KERNEL, **options}).fit(table)


@pytest.fixture(scope="module")
def model():
    return fit(TABLE)


def equal(first, second):
    pd.testing.assert_frame_equal(first, second, check_dtype=False, rtol=1e-7, atol=1e-7)


def test_saved_loaded_elsewhere_and_asked_for_raw_rows(tmp_path):
    for name, table in (("t", TABLE), ("new", NEW.iloc[:, ::-1])):  # 3 January, or 1 March
        table.to_csv(tmp_path / f"{name}.csv", index=False, date_format="%d/%m/%Y")
    model = fit(tmp_path / "t.csv")
    model.relevance()
    model.save(tmp_path / "m.npz")
    again = TableMap.load(tmp_path / "m.npz")
    assert again.fitted_.known is not None  # it is not computed twice
    assert again.relevance().equals(model.relevance())
    code = "from idm_nb import TableMap; m = TableMap.load('m.npz'); n = 'new.csv'\n"
    code += "m.predict(n, coordinates=True).to_csv('p.csv', index=False)\n"
    code += "m.alike(n, 2).to_csv('a.csv', index=False); m.report('r.html')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    equal(pd.read_csv(tmp_path / "p.csv"), model.predict(NEW, coordinates=True))
    gaps = dict(keep_default_na=False, na_values={"celsius": [""]})
    there = pd.read_csv(tmp_path / "a.csv", parse_dates=["day"], **gaps)
    equal(there, model.alike(NEW, 2).replace({"base": {None: ""}}))
    assert (tmp_path / "r.html").read_text() == model.report()


def test_what_is_new_is_counted(model):
    new = NEW.assign(ligand=["tBuXPhos", None, *NEW.ligand[2:]], day=[None, *NEW.day[1:]])
    told = "no word of training, such as 'tBuXPhos'; they are none of the known words"
    gaps = "gaps, and none in training; they are filled"
    notes = [("ligand", told), ("ligand", gaps), ("day", gaps)]
    assert model.typed(new).notes == [f"column {n!r}: {what}, in 1 row" for n, what in notes]
    found, plain = model.predict(new), model.predict(NEW)
    equal(found[2:], plain[2:])
    assert found.novel[0] and not plain.novel.all()  # its word is not known
    alone = fit(TABLE.assign(ligand=np.where(np.arange(200) == 7, "rare", TABLE.ligand)), holdout=0)
    assert not alone.predict(NEW.assign(ligand="another")).novel.any()  # as training rows are
    assert not model.typed(NEW).notes and np.isfinite(model.predict(new).predicted_rate).all()
    assert len(model.predict(NEW[:0])) == len(model.alike(NEW[:0])) == 0
    assert len(model.predict({name: [None] for name in NEW})) == 1  # a row of gaps is a row


def test_a_word_among_numbers_is_a_gap_and_stops_no_other_row(model):
    new = NEW.astype({"celsius": object})
    new.loc[[2, 4], "celsius"] = "hot"
    told = "column 'celsius': no number, such as 'hot'; they are taken as gaps, in 2 rows"
    assert model.typed(new).notes == [told]
    equal(model.predict(new), model.predict(new.replace("hot", np.nan).astype({"celsius": float})))
    new.loc[2, "celsius"] = "1,5"  # could be a number that is written in another way
    refuses("holds '1,5' at data row 3", lambda: model.predict(new))


def test_what_makes_the_share_too_good_is_warned_of():
    rng = np.random.default_rng(0)
    person, noise = np.repeat(np.arange(30), 10), rng.normal(size=(300, 3))
    table = pd.DataFrame(rng.normal(size=(30, 3))[person] + 0.05 * noise, columns=list("abc"))
    table["y"] = rng.normal(size=30)[person] + 0.02 * rng.normal(size=300)
    share = "On rows with new values of {0}, the map explains \\d* % of the variation in y, less than half of"
    named = dict(feature="y", columns=["a", "b", "c"])  # the groups are left out
    for given, options in (("person", dict(feature="y")), ("donor", named)):
        with pytest.warns(UserWarning, match=share.format(given)):
            model = fit(table.assign(**{given: person}), **options)
        found = re.search('class="headline">(.*)</p>', model.report())[1]
        for text in (str(model.verdict_), found):  # what is true of new groups comes first
            assert re.match(share.format(given), text) and "typically off by" not in found
    days = pd.DataFrame({"day": rng.uniform(size=300), "Subject id": person})  # told by its name
    with pytest.warns(UserWarning, match=share.format("Subject id")):
        fit(days.assign(y=table.y + 0.2 * days.day), "y")
    tenths = "On tenths of the table that are not used for fitting, the map explains \\d* % of the"
    X, y = table[list("abc")], table.y
    plain = lambda X, y: clone(KERNEL).fit(X, y).verdict_
    for way in (lambda: fit(table, "y").verdict_, lambda: plain(X, y)):
        with pytest.warns(UserWarning, match="Rows that follow each other are alike"):
            verdict = way()
        assert re.match(tenths, str(verdict)), verdict
    mixed = rng.permutation(300)  # the rows of a person need not follow each other
    with pytest.warns(UserWarning, match=share.format("person")):
        plain(X.assign(person=person).loc[mixed], y[mixed])
    for error in (0, 0.005):
        u = 2 * TABLE.rate + 1 + error * rng.normal(size=len(TABLE))
        for way in (fit, lambda table: plain(table[["u"]].assign(a=u[::-1].values), table.rate)):
            with pytest.warns(UserWarning, match="can be computed from 'u', exactly or nearly"):
                way(TABLE.assign(u=u))


def ordinary_tables():
    "Tables without groups, leaks and order, by what they hold."
    rng = np.random.default_rng(3)
    time, noise = np.repeat(np.arange(4.0), 44), rng.normal(size=(176, 4))
    on = [rng.uniform(size=176) < 1 - np.abs(time - k % 5) / 3.2 for k in range(10)]
    genes = np.where(on, 15 + rng.normal(size=(10, 176)), 0).T
    answers = rng.integers(0, 2, (176, 4))
    dose = np.sort(rng.integers(0, 8, 176))
    by_x = noise[noise[:, 0].argsort()]
    y, x = np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 15))
    grid = np.c_[x.ravel(), y.ravel()]
    return {
        "zeros, sorted by the feature": (genes, time),
        "yes or no, and a number": (np.c_[answers, noise[:, 0]], answers.sum(1) + noise[:, 0]),
        "sorted levels": (np.c_[dose, noise], np.sin(dose) + 0.3 * noise[:, 0]),
        "whole numbers": (
            rng.binomial(16, 0.5 + 0.4 * np.sin(time[:, None] + np.arange(20))),
            time,
        ),
        "sorted by a column": (by_x, np.sin(2 * by_x[:, 0]) + by_x[:, 1]),
        "a grid": (grid, np.sin(3 * grid[:, 0]) + grid[:, 1] ** 2 + 0.1 * rng.normal(size=180)),
    }


@pytest.mark.parametrize("kind", ordinary_tables())
def test_ordinary_tables_get_no_caution(kind):
    X, y = ordinary_tables()[kind]
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=y)
    model = IteratedDiffusionMap(1, regressor="ridge", random_state=0)
    assert TableMap("y", model=model, random_state=0).fit(table).verdict_.cautions == []
    assert model.fit(X, y).verdict_.cautions == []


WRONG = {
    "table has no columns 'ligand', 'day'; its": NEW.drop(columns=["ligand", "day"]),
    "'celsius' holds 'hot' at data row 1, but held numbers in training": NEW.assign(celsius="hot"),
    "'celsius' is not finite at data row 2": NEW.assign(celsius=[1, np.inf] + [2.0] * 7),
    "'celsius' exceeds 1e\\+100": NEW.assign(celsius=1e200),
    "'celsius' holds '2024": NEW.assign(celsius=NEW.day),
    "'day' holds 'later' at data row 1, but held dates in training": NEW.assign(day="later"),
    "'day' holds '1st' at data row 2, ": NEW.assign(day=[str(NEW.day[0]), "1st", *[None] * 7]),
    "order does not name 'dppf'": dict(feature="ligand", order=["SPhos", "XPhos"]),
    "groups must name one column, got ligand, base": dict(groups=["ligand", "base"]),
    "feature names no column": dict(feature=[]),
    "landmarks must be 16 to 160": dict(model=IteratedDiffusionMap(1, landmarks=5)),
    "besides the feature: 'ligand' is left out: ignored; 'base'": dict(ignore=list(NEW)),
    "holdout must be": dict(holdout=2),
    "angle='turns' is not known": dict(angle="turns"),
    "no column 'yield'": dict(feature="yield"),
    "both data and feature": dict(columns=["rate", "wet"]),
    "'rate' is both index and feature": dict(index="rate"),
    "'rate' is both groups and feature": dict(groups="rate"),
    "no column 'ligands'; its columns are ligand": dict(reading=dict(words=["ligands"])),
    "'base' has a gap at data row": dict(groups="base"),
}


@pytest.mark.parametrize("given", [dict(groups="batch"), dict(ignore="ph"), dict(columns="ph")])
def test_names_of_columns_are_exact(given):
    table = TABLE[["celsius", "rate"]].assign(batch1=1, batch2=2, ph1=3, ph2=4)
    [name] = given.values()
    refuses(f"no column '{name}'; .* near: '{name}2', '{name}1'$", lambda: fit(table, **given))


def test_a_weight_that_is_read_as_words_is_refused():
    model = TableMap("rate", model=KERNEL, reading={"words": ["count"]})
    refuses("'count' holds words", lambda: model.fit(TABLE.assign(count="1"), "count"))


@pytest.mark.parametrize("words", WRONG)
def test_new_rows_and_options_that_are_refused(words, model):
    given = WRONG[words]
    refuses(words, lambda: fit(TABLE, **given) if isinstance(given, dict) else model.predict(given))


def test_the_library_of_the_frame_does_not_matter(model):
    polars = pytest.importorskip("polars")
    kinds = [TABLE.astype({"ligand": "category", "base": "string"}), TABLE.astype(object)]
    kinds += [TABLE.convert_dtypes(), TABLE.convert_dtypes(dtype_backend="pyarrow")]
    kinds += [polars.from_pandas(TABLE), {name: list(column) for name, column in TABLE.items()}]
    for table in kinds:
        other = fit(table)
        equal(other.predict(table, coordinates=True)[:9], model.predict(NEW, coordinates=True))
        equal(other.alike(NEW, 2), model.alike(NEW, 2))


def test_words_that_look_like_numbers():
    code = np.where(np.arange(200) % 3, "7", "07")
    table = TABLE[["celsius", "rate"]].assign(code=code)
    for given, labels in (
        (code, ["code = 07", "code = 7"]),
        (np.where(code == "7", 7.0, np.nan), ["code = 7", "code has a gap"]),
    ):
        model = fit(table.assign(code=given), reading=dict(words=["code"]))
        assert [label for label in model.fitted_.encoder.labels() if "code" in label] == labels
        assert not model.typed(table.assign(code=given)).notes


def test_a_feature_of_words_needs_an_order():
    grade = pd.cut(TABLE.rate, [-np.inf, 40, 80, np.inf], labels=["low", "mid", "high"])
    with pytest.raises(ValueError, match=r"type order=\['high', 'low', 'mid'\] \(from low to high"):
        fit(TABLE.assign(rate=grade.astype(str)))
    model = fit(TABLE.assign(rate=grade.astype(str)), order=["low", "mid", "high"])
    found = model.predict(TABLE)
    assert (found.predicted_rate == grade).mean() > 0.85
    shares = found[[f"probability_{word}" for word in ("low", "mid", "high")]]
    likeliest = shares.idxmax(axis=1).str[12:]
    assert np.allclose(shares.sum(axis=1), 1) and (likeliest == grade).mean() > 0.85
    equal(fit(TABLE.assign(rate=grade)).predict(NEW), model.predict(NEW))  # an ordered category
    notes = fit(TABLE.assign(rate=grade.cat.codes)).fitted_.roles.notes
    assert "has only 3 different values: if they are classes without an order" in notes[0]


def test_columns_without_information_are_left_out(model):
    kept = model.fitted_.kept.numbers[0]  # its word is none of those of the rows that are fitted
    rare = np.where(np.arange(1, 201) == kept, "only once", "always")
    table = TABLE.assign(one=1, same="a", empty=None, rare=rare, name=[f"p{k}" for k in range(200)])
    other = fit(table).fitted_
    assert other.encoder.names == list(NEW)
    uses = [plan.use.removeprefix("left out: ") for plan in other.roles.plans[6:]]
    assert uses == ["one value", "one value", "no entry", "one value", "names the rows"]
    assert "'rare' is left out: one value in the rows that are fitted" in other.roles.notes[-1]


def test_relevance_finds_what_matters():
    "The rate depends on the ligand and the temperature; the level is five per cent for any other."
    alarms = []
    for seed in range(10):  # without rows that are kept back, halves judge each other
        found = fit(couplings(seed, 250), holdout=(0.2, 0)[seed % 2]).relevance()
        named = set(found.column[found.above_chance])
        assert named >= {"ligand", "celsius"} and found.relevance.is_monotonic_decreasing
        alarms.append(len(named) > 2)
    assert sum(alarms) <= 2  # of 10 at five per cent: more in 1.2 % of such draws


@pytest.mark.parametrize("count", [3, 20])
def test_relevance_with_few_groups(count):
    "Three cannot show which columns matter; of twenty, four are kept back, whose signs alone could not."
    rng = np.random.default_rng(0)
    X, batch = rng.uniform(size=(240, 3)), np.repeat(np.arange(count), 240 // count)
    y = X @ [1, 2, 0] + rng.normal(size=count)[batch] * 0.02 + rng.normal(size=240) * 0.05
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(batch=batch, y=y)
    model = fit(table, "y", groups="batch")
    told = "3 groups are too few to show which columns matter" in model.report()
    found = model.relevance()
    assert told if count == 3 else set(found.column[found.above_chance]) == {"a", "b"} and not told


@pytest.mark.parametrize("seed", [0, 1])
def test_counterparts_are_the_other_mechanism(seed):
    "With palladium the rate grows with the temperature, with nickel it falls."
    rng = np.random.default_rng(seed)
    metal, heat = rng.choice(["Pd", "Ni"], 300), rng.uniform(size=300)
    rate = np.where(metal == "Pd", heat, 1 - heat) + 0.02 * rng.normal(size=300)
    table = {"metal": metal, "heat": heat, "time": rng.uniform(size=300), "rate": rate}
    table = pd.DataFrame({**table, "batch": rng.uniform(size=300)})
    model = fit(table)
    assert model.model_.branches_.n_branches == 2
    for k in range(12):
        row = table[k : k + 1]
        found = model.counterparts(row, n=2)
        assert len(found) == 2 and (found.metal != metal[k]).all()
        assert np.abs(found.rate - rate[k]).max() < 0.15
        # which heat is needed follows from the metal, unless it is near one half
        must = found.must_change[0].split(", ")
        assert "metal" in must and ("heat" in must or abs(heat[k] - 0.5) < 0.2)
        branch = int(model.place(row).branch[0])
        assert (model.counterparts(row, branch=1 - branch).branch == 1 - branch).all()
    refuses("sought for one row, got 2", lambda: model.counterparts(table[:2]))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_gap_is_no_way_to_reach_a_value(seed):
    rng = np.random.default_rng(seed)
    metal, heat, flow = rng.choice(["Pd", "Ni"], 400), *rng.uniform(size=(2, 400))
    rate = np.where(metal == "Pd", 1.2 - heat, heat) + 0.3 * flow + 0.03 * rng.normal(size=400)
    lost = lambda column, gap: np.where(rng.uniform(size=400) < 0.15, gap, column)
    table = pd.DataFrame({"metal": metal, "heat": lost(heat, np.nan), "flow": lost(flow, np.nan)})
    model = fit(table.assign(rate=rate), holdout=0)
    branch = model.fitted_.branch
    assert model.fitted_.branches.n_branches == 2
    assert len({*zip(metal, branch)}) == 2  # the metals are the branches
    table["metal"] = lost(metal.astype(object), None)
    model = fit(table.assign(rate=rate), holdout=0)
    whole = table[table.notna().all(axis=1)]
    for k in range(5):
        assert not model.counterparts(whole[k : k + 1], n=20).isna().any(axis=None)
    # a gap in the metal makes no third branch
    known, branch = table.metal.notna(), model.fitted_.branch
    assert model.fitted_.branches.n_branches == 2 and len({*zip(metal[known], branch[known])}) == 2


def test_alike_and_counterparts_of_one_branch_return_the_rows(model):
    found = model.alike(NEW, 3)
    assert list(found)[:6] == "row rank training_row distance rate differs".split()
    assert list(found)[6:] == list(model.relevance().column) and "ligand" in list(found)[6:8]
    equal(found[list(NEW)], TABLE[list(NEW)].iloc[found.training_row - 1].reset_index(drop=True))
    gap = np.abs(found.rate - np.repeat(TABLE.rate.to_numpy()[:9], 3))
    assert gap[found["row"] > 1].max() < 25  # of 20 to 200; the first row has no temperature
    far = found.ligand.to_numpy() != np.repeat(NEW.ligand.to_numpy(), 3)
    assert (found.differs.str.contains("ligand") == far).all()
    table = TABLE.assign(lab=[f"{k:03}" for k in range(200)])  # an index names the rows
    for named in (fit(table, index="lab"), fit(table.set_index("lab"))):
        assert named.predict(table[:3]).lab.tolist() == ["000", "001", "002"]
        assert "lab" not in named.predict(NEW) and len(named.alike(table[:1], 2).training_lab) == 2
    others = model.counterparts(NEW[5:6], n=3)  # the same value with another ligand, nearest first
    assert (others.ligand != NEW.ligand[5]).all() and (np.diff(others.distance) >= 0).all()
    plain = TABLE.assign(rate=TABLE.rate / np.where(TABLE.ligand == "dppf", 2, 1))
    others = fit(plain).counterparts(NEW[3:4], n=3)  # as different as possible
    assert len(others) and (np.diff(others.distance) <= 0).all()


SIZES = {
    "all columns are words": dict(table=TABLE[["ligand", "base", "rate"]]),
    "rows twice": dict(table=pd.concat([TABLE, TABLE, TABLE[:20]], ignore_index=True)),
    "17 rows": dict(table=TABLE[:17], holdout=0),
    "two features": dict(table=TABLE.assign(log=np.log(TABLE.rate)), feature=["rate", "log"]),
    "an angle and words": dict(table=TABLE, angle="degrees"),
    "gaps in the feature": dict(table=TABLE.assign(rate=TABLE.rate.where(np.arange(200) % 3 > 0))),
    "landmarks": dict(table=TABLE, model=IteratedDiffusionMap(1, regressor="kernel", landmarks=60)),
    "units as they are": dict(table=TABLE, scale="none"),
    "groups": dict(table=TABLE.assign(lab=np.arange(200) // 4), groups="lab"),
    "a label with gaps": dict(table=TABLE, label="base"),
}


@pytest.mark.filterwarnings("ignore:.*too few to say")
@pytest.mark.parametrize("name", SIZES)
def test_tables_of_all_kinds(name, tmp_path):
    model, new = fit(**SIZES[name]), NEW.assign(lab=0)
    model.save(tmp_path / "m.npz")
    again, fitted = TableMap.load(tmp_path / "m.npz"), model.fitted_
    for call in (lambda m: m.predict(new), lambda m: m.alike(new, 2), lambda m: m.transform(new)):
        equal(call(again), call(model))
    again.counterparts(new[:1])
    assert "<img" in model._repr_html_() and model.report() == again.report()
    assert not np.isnan(fitted.rows.truth).any()
    assert not {*fitted.rows.numbers} & {*fitted.kept.numbers}


def test_blocks_have_the_variance_of_one_number():
    words = np.repeat(["amber", "brine", "cedar", "dune"], 50)
    frame = TABLE.assign(text=[f"{word} {k} of {word}" for k, word in enumerate(words)])
    encoder = fit(frame, holdout=0).fitted_.encoder
    assert [part.kind for part in encoder.parts] == "words words number date number text".split()
    for part in encoder.parts:
        variance = np.nanvar(part.encode(frame[part.name]), axis=0).sum()
        assert part.kind not in ("words", "text") or variance == pytest.approx(1)
    wet = encoder.encode(frame, np.nan_to_num)[:, encoder.labels().index("wet")]
    assert np.ptp(wet) == 1  # zeros and ones keep their unit


def test_spectra_share_one_unit_and_dates_have_cycles():
    waves = np.cumsum(np.random.default_rng(0).normal(size=(200, 30)), axis=1)
    mixed = np.random.default_rng(1).permutation(30)
    for columns, count in ((waves, 1), (waves[:, mixed], 30)):
        frame = pd.DataFrame(columns).add_prefix("nm").assign(rate=waves[:, 9])
        assert len({part.unit for part in fit(frame).fitted_.encoder.parts}) == count
    hours = pd.Series(pd.date_range("2024-01-01", periods=200, freq="5h"), name="at")
    table = pd.DataFrame({"at": hours, "rate": np.sin(2 * np.pi * hours.dt.hour / 24)})
    model = fit(table)
    (part,) = model.fitted_.encoder.parts
    assert part.cycles == ["day", "week"]  # 42 days have seen no year twice
    assert np.allclose(np.ptp(part.encode(hours + pd.Timedelta(days=7)) - part.encode(hours), 0), 0)
    assert np.abs(model.predict(table).predicted_rate - table.rate).max() < 0.1


def test_the_estimator_of_numbers_names_the_door_and_a_pipeline():
    pytest.importorskip("skrub")
    import skrub
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names = dict(make_pipeline=make_pipeline, SimpleImputer=SimpleImputer, skrub=skrub)
    names |= dict(StandardScaler=StandardScaler, estimator=KERNEL)
    data, rate = TABLE.drop(columns="rate"), TABLE.rate
    door = "numbers: 'ligand', 'base', 'day'. With a feature, use idm_nb.TableMap"
    with pytest.raises(ValueError, match=door) as said:
        IteratedDiffusionMap().fit(data, rate)
    lines = [line.strip() for line in str(said.value).splitlines()[1:]]
    exec("\n".join(lines), names)  # what the message says works
    model = names["model"].fit(data, rate)
    assert model.score(data, rate) > 0.9 and model.get_feature_names_out()[0] == "rate"
    with pytest.raises(ValueError, match="words that have an order as numbers"):
        IteratedDiffusionMap().fit(data[["wet"]], TABLE.ligand)


def test_results_have_the_index_of_the_frame(model, tmp_path):
    new = NEW.sample(frac=1, random_state=0)
    found, plain = (model.predict(rows).drop(columns="row") for rows in (new, NEW))
    equal(found.sort_index(), plain)
    named = model.transform(new.set_axis(new.ligand.to_numpy()))
    assert named.index.tolist() == new.ligand.tolist()
    levels = pd.MultiIndex.from_product([["a", "b", "c", "d"], range(50)], names=["batch", "try"])
    table = TABLE.set_axis(levels)
    other = fit(table, groups="batch")
    assert set(other.fitted_.roles.data) == {*NEW, "try"}
    assert other.predict(table[:2]).index.tolist() == [("a", 0), ("a", 1)]
    table.to_parquet(tmp_path / "t.parquet")
    equal(fit(tmp_path / "t.parquet", groups="batch").predict(table)[:2], other.predict(table[:2]))


def test_dates_with_zones_are_instants():
    days = pd.Series(pd.date_range("2024-01-01", periods=200, freq="7h", tz="US/Eastern"))
    heat = (TABLE.rate + 3 * days.dt.tz_convert("UTC").dt.hour).rename("rate")
    model = fit(pd.DataFrame({"day": days, "celsius": TABLE.celsius, "rate": heat}))
    new = pd.DataFrame({"day": days, "celsius": TABLE.celsius})[:9]
    text = days[:9].map(lambda day: day.isoformat())
    arrow = days[:9].astype("timestamp[ns, tz=US/Eastern][pyarrow]")
    for column in (days[:9].dt.tz_convert("Asia/Tokyo"), text, arrow):
        equal(model.predict(new.assign(day=column)), model.predict(new))
    day = TABLE.day.dt.date.astype("date32[pyarrow]")
    equal(fit(TABLE.assign(day=day)).predict(NEW), fit(TABLE).predict(NEW))
    end = pd.Timestamp("2024-01-05") + pd.to_timedelta(TABLE.rate.round(), unit="D")
    model = fit(TABLE.drop(columns=["rate", "day"]).assign(end=end), "end")
    assert "feature 'end' holds dates: it is used as days" in " ".join(model.fitted_.roles.notes)
    found = model.predict(TABLE)
    error = (found.predicted_end - end).dt.total_seconds().abs() / 86400
    assert model.verdict_.r2 > 0.9 and np.median(error) < 5 > np.median(found.standard_error_days)


@pytest.mark.parametrize("unit", ["degrees", "radians"])
def test_an_angle_is_in_the_turn_of_the_table(unit):
    turn = 360.0 if unit == "degrees" else 2 * np.pi
    angle = np.random.default_rng(0).uniform(0, turn, 300)
    wave = np.c_[np.cos(angle * 2 * np.pi / turn), np.sin(angle * 2 * np.pi / turn)]
    table = pd.DataFrame(wave, columns=["x", "y"]).assign(angle=angle)
    model = fit(table, "angle", angle=unit)
    found = model.predict(table).predicted_angle
    assert found.between(0, turn).all() and np.median(np.abs(found - angle)) < turn / 1000
    error = float(re.search(r"typically off by ([\d.e-]+);", model.report())[1])
    assert error < turn / 100  # also where a turn ends


@pytest.mark.parametrize("name", [2, "row", "must_change", "must change"])
def test_any_name_of_a_column(name):
    rng = np.random.default_rng(0)
    metal, heat, flow = rng.choice(["Pd", "Ni"], 300), *rng.uniform(size=(2, 300))
    rate = np.where(metal == "Pd", 1.2 - heat, heat) + 0.2 * flow
    others = [n for n in ("must_change", "must change", "branch", 1) if n != name]
    table = pd.DataFrame({**dict(zip(others, [metal, heat, flow])), name: rate})
    model = fit(table, name)
    assert model.fitted_.branches.n_branches == 2
    row = table.iloc[[np.argsort(rate)[150]]]
    found = model.counterparts(row, n=2)
    assert set(found.branch) == {1 - model.predict(row).branch.iloc[0]}
    assert str(name) in model.report()


LEAKS = {  # the feature, of positive columns a and b and a column c
    "a sum": lambda a, b, c: a + b,
    "a product": lambda a, b, c: a * b,
    "a mass index": lambda a, b, c: np.round(a / b**2, 3),
    "a mean": lambda a, b, c: (a + b + c) / 3,
    "an order": lambda a, b, c: np.exp(c),
}


@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize("name", LEAKS)
def test_a_feature_that_columns_compute_is_a_caution(name, others):
    rng = np.random.default_rng(0)
    columns = [*np.exp(0.5 * rng.normal(size=(2, 200))), rng.normal(size=200)]
    noise = {f"x{k}": x for k, x in enumerate(rng.normal(size=(others, 200)))}
    table = pd.DataFrame({**dict(zip("abc", columns)), **noise, "y": LEAKS[name](*columns)})
    ridge = IteratedDiffusionMap(1, regressor="ridge")
    with pytest.warns(UserWarning, match="The feature y can be computed from"):
        TableMap("y", model=ridge, feature_transform="none", random_state=0).fit(table)


def test_a_column_that_gives_one_of_several_features_away():
    table = TABLE[["celsius", "rate"]].dropna().assign(b=np.arange(190) ** 0.5)
    model = fit(table.assign(root=table.b), ["rate", "root", "rate"])
    assert model.fitted_.roles.features == ["rate", "root"]
    assert "root can be computed from 'b', exactly or nearly" in str(model.verdict_)


@pytest.mark.parametrize("column", ["acid", "y"])
def test_a_misprint_makes_no_branches_and_hides_no_column(column):
    rng = np.random.default_rng(0)
    side, heat, flow = rng.choice([-1.0, 1.0], 300), *rng.uniform(size=(2, 300))
    table = pd.DataFrame({"acid": side + 0.3 * rng.normal(size=300), "heat": heat, "flow": flow})
    table["y"] = np.where(side > 0, 1.3 - heat, heat) + 0.2 * flow
    table.loc[100, column] = 1e3
    model = fit(table, "y", holdout=0)
    assert model.fitted_.branches.n_branches == 2
    assert model.relevance().query("above_chance").column.tolist()[:2] == ["acid", "heat"]


@pytest.mark.parametrize("kind", ["words", "numbers"])
@pytest.mark.parametrize("share", [0.0, 0.2])  # of gaps in training
def test_what_is_said_of_rows_without_the_column_that_decides(kind, share):
    rng = np.random.default_rng(0)
    acid, (heat, flow), noise = rng.uniform(size=1000) < 0.5, rng.uniform(size=(2, 1000)), 0.05
    y = np.where(acid, heat, 1 - heat) + 0.3 * flow + noise * rng.normal(size=1000)
    words = np.where(acid, "acid", "base").astype(object)
    medium = words if kind == "words" else acid.astype(float)
    table = pd.DataFrame({"medium": medium, "heat": heat, "flow": flow})
    gap = rng.uniform(size=1000) < np.where(np.arange(1000) < 400, share, 0.4)
    table["medium"] = table.medium.where(~gap, None if kind == "words" else np.nan)
    model = fit(table[:400].assign(y=y[:400]), "y", holdout=0)
    new, gap, y, acid = table[400:], gap[400:], y[400:], acid[400:]
    placed = model.place(new)
    error = y - placed.values[:, 0]
    # nothing tells the branch, so the prediction is the mean of both: +-(heat - 1/2)
    assert np.sqrt(np.mean(error[gap] ** 2)) < 1.25 * np.sqrt(1 / 12 + noise**2)
    for rows in (gap, ~gap):
        ratio = np.sqrt(np.mean(error[rows] ** 2) / np.mean(placed.errors[rows] ** 2))
        assert 0.8 < ratio < 1.2
        low, high = placed.values[:, 0] + [[-1.645], [1.645]] * placed.errors[:, 0]
        assert 0.85 < np.mean((low < y) & (y < high), where=rows)
    assert model.fitted_.branches.n_branches == 2 and placed.novel.mean() < 0.02
    right = placed.branch == (acid if placed.branch[~gap] @ acid[~gap] > 99 else ~acid)
    said = placed.probability.max(axis=1)
    assert right[~gap].mean() > 0.98 < said[~gap].mean()
    assert said[gap].mean() < right[gap].mean() + 0.15  # of 32 copies 18 on one side, by chance


def test_errors_of_rows_with_gaps_are_true_on_measured_data():
    said, held = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = load_wine(as_frame=True).data.sample(frac=1, random_state=seed)
        table = table.mask((rng.uniform(size=table.shape) < 0.2) & (table.columns != "flavanoids"))
        model = TableMap("flavanoids", holdout=0, random_state=0).fit(table[:80])
        placed, y = model.place(table[80:]), table.flavanoids[80:].to_numpy()
        off, errors = np.abs(placed.values[:, 0] - y), placed.errors[:, 0]
        said.append(np.sqrt(np.mean(errors**2) / np.mean(off**2)))
        held.append(np.mean(off <= model.model_.errors_.quantile(0.9) * errors))
    # with the held-out values in what gaps hide, .78 and .77
    assert 0.85 < np.mean(said) < 1.2 and 0.86 < np.mean(held) < 0.95


def test_rows_with_gaps_are_not_novel_where_those_of_training_have_them():
    year = np.random.default_rng(0).permutation(np.arange(1880.0, 2000.0))
    table = pd.DataFrame({"year": year, "satellite": np.where(year < 1980, np.nan, year)})
    model = TableMap("level", holdout=0, random_state=0).fit(table[:90].assign(level=year[:90]))
    assert model.place(table[90:]).novel.mean() < 0.1  # .8 by rows that lend their cells


def test_gaps_are_filled_by_what_the_other_columns_tell():
    rng = np.random.default_rng(0)
    heat, others = rng.normal(size=1000), rng.normal(size=(1000, 4))
    signal = heat + 0.3 * rng.normal(size=1000)
    table = pd.DataFrame(np.column_stack([signal, others])).add_prefix("x").assign(heat=heat)
    model = fit(table[:600].assign(y=heat[:600]), "y", holdout=0)
    placed = model.place(table[600:].assign(heat=np.nan))
    # the best prediction from the signal has this error
    best = 0.3 / np.sqrt(1 + 0.3**2)
    assert np.sqrt(np.mean((placed.values[:, 0] - heat[600:]) ** 2)) < 1.15 * best
    assert 0.9 < np.sqrt(np.mean(placed.errors**2)) / best < 1.2
    # a column without influence may have a gap
    whole, without = model.place(table[600:]), model.place(table[600:].assign(x1=np.nan))
    assert not without.novel.any() and np.abs(without.values - whole.values).max() < 0.05
    assert np.median(without.errors) < 1.2 * np.median(whole.errors)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gaps_only_in_new_rows(seed):
    "Lent numbers predict as well as filled gaps (R2 .931, .924, .960 by kernels), not worse (.925, .908, .954)."
    rng, n = np.random.default_rng(seed), 1300
    hidden = rng.normal(size=(n, 2))
    X = hidden @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(n, 6))
    y = hidden[:, 0] + np.sin(hidden[:, 1]) + 0.1 * rng.normal(size=n)
    table = pd.DataFrame(X).add_prefix("x")
    model = fit(table[:300].assign(y=y[:300]), "y", holdout=0)
    new = model.typed(table[300:].mask(rng.uniform(size=(1000, 6)) < 0.25)).frame
    placed, filled = model.place(new), model.model_.map_.place(model.fitted_.encode(new))
    off = placed.values[:, 0] - y[300:]
    assert np.mean(off**2) < 1.02 * np.mean((filled.values[:, 0] - y[300:]) ** 2)
    inside = np.abs(off) < model.model_.errors_.quantile(0.9) * placed.errors[:, 0]
    assert 0.86 < np.mean(inside) < 0.94


def test_the_share_explained_is_true_of_new_rows_with_gaps():
    inner = IteratedDiffusionMap(regressor="lengths")
    model = TableMap("y", holdout=0, random_state=0, model=inner)
    for seed in (3, 9):
        rng = np.random.default_rng(seed)
        X, noise = rng.normal(size=(2300, 6)), 0.3 * rng.normal(size=2300)
        y = np.sin(2 * X[:, 0]) + X[:, 1] + X[:, 2] ** 2 / 2 + noise
        X[rng.uniform(size=X.shape) < 0.3] = np.nan
        table = pd.DataFrame(X).add_prefix("x")
        model.fit(table[:300].assign(y=y[:300]))
        off = model.predict(table[300:]).predicted_y - y[300:]
        true = 1 - np.mean(off**2) / y[300:].var()
        # by means over copies with the cells of other rows, .65 was said where .20 was true
        assert -0.2 < model.verdict_.r2 - true < 0.1 and true > 0.5


def test_one_share_of_rows_held_out_and_kept_back():
    "It is the share of all of them, and the two sources do not speak beside each other."
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(186, 4)), columns=list("abcd"))
    frame["d"] = np.exp(2 * frame.d)  # a heavy tail
    frame["y"] = frame.a + np.sin(2 * frame.b) + 0.5 * rng.normal(size=186)
    model = TableMap("y").fit(frame)
    fitted, verdict = model.fitted_, model.verdict_
    claim, kept = model.model_.estimate_.mixture_.claim, fitted.kept.truth
    missed = np.r_[claim.y - claim.predicted, kept - fitted.placed_kept.values]
    y = np.r_[claim.y, kept]
    assert verdict.r2 == pytest.approx(1 - np.sum(missed**2) / np.sum((y - y.mean()) ** 2))
    assert verdict.rows == verdict.groups == len(y) and verdict.low < verdict.r2 < verdict.high


@pytest.mark.parametrize("seed", range(3))
def test_a_second_strip_without_effect_is_no_branch_as_number_or_word(seed):
    rng = np.random.default_rng(seed)
    along, across, side = rng.uniform(size=500), rng.uniform(size=500), rng.integers(0, 2, 500)
    y = np.sin(3 * along) + 0.02 * rng.normal(size=500)  # two ways to a value on each strip
    for strip in (side, np.where(side, "left", "right")):
        table = pd.DataFrame(dict(along=along, across=0.3 * across, strip=strip, y=y))
        assert TableMap("y", random_state=seed).fit(table).fitted_.branches.n_branches == 2
