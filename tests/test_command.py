"""The command `idm-nb`, from files to folders, and its errors."""

import json
import os
import shlex
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from book import linux

import idm_nb
from idm_nb.command import jobs
from idm_nb.command.command_line import build_parser, main
from idm_nb.command.jobs import FILES
from idm_nb.datasets import feature_example
from idm_nb.tables import TableMap, pieces, read_table, roles
from idm_nb.tables.cells import Style
from idm_nb.tables.pieces import write_table

pd = pytest.importorskip("pandas")
X, Y, _ = feature_example("annulus radius", 500, random_state=0)
RING = {"x": X[:, 0], "y": X[:, 1], "radius": Y[:, 0]}
NAMES = np.char.add("p", np.arange(500).astype(str))
FAST = "--quiet --iterations 1 --regressor kernel"


@pytest.fixture()
def here(tmp_path, monkeypatch):
    "A folder with the table ring.csv; paths are relative to it."
    monkeypatch.chdir(tmp_path)
    write_table("ring.csv", RING)
    return tmp_path


def run(line, status=0):
    assert main(shlex.split(line)) == status


def fit(line, status=0):
    run(f"fit {line} {FAST}", status)


def json_of(out):
    return json.loads(open(f"{out}/summary.json").read(), parse_constant=pytest.fail)


def frames_of(out):
    names = "predictions", "embedding"
    return [read_table(f"{out}/{name}.csv").frame.reset_index(drop=True) for name in names]


def test_fit_and_transform(here, capsys):
    run("fit ring.csv --feature radius --out out --quiet --iterations 1")
    assert set(os.listdir("out")) == set(FILES)
    summary, page, printed = json_of("out"), open("out/report.html").read(), capsys.readouterr().out
    assert summary["rows"] == 500 and summary["held_out"]["rows"] == 100
    assert summary["held_out"]["r2"] > 0.98 and summary["held_out"]["coverage"] > 0.9
    assert summary["verdict"]["beats_chance"] and summary["branches"] == summary["pieces"] == 1
    assert sum(summary["weights"].values()) == pytest.approx(1) and "://" not in page
    assert set(summary["above_chance"]) == {"x", "y"}
    found, places = frames_of("out")
    names = "row part radius predicted_radius standard_error lower_90 upper_90".split()
    names += ["branch", "novel"]
    assert list(found) == names and len(found) == 500
    missed = np.sqrt(np.mean((found.predicted_radius - found.radius) ** 2))
    # the errors are calibrated on the rows of training, and a few rows have most of the squared error
    assert missed == pytest.approx(np.sqrt(np.mean(found.standard_error**2)), rel=0.5)
    assert summary["verdict"]["rows"] == 500 and "R2" not in printed  # one share, of all rows
    assert printed.strip().endswith(" ".join(summary["verdict"]["sentences"]))
    for kind in "csv csv.gz csv.bz2 tsv tsv.gz parquet feather npz".split():
        run(f"transform out/model.npz ring.csv --out moved.{kind} --quiet")
        moved = read_table(f"moved.{kind}").frame.reset_index(drop=True)
        assert np.allclose(moved[["z1", "z2"]], places[["z1", "z2"]], atol=1e-9)
        assert moved.novel.dtype == bool and (moved.novel == found.novel).all()
    assert idm_nb.load("out/model.npz").fitted_.encoder.names == ["x", "y"]
    run("alike out/model.npz ring.csv --out alike.csv --count 5 --quiet")
    pairs = read_table("alike.csv").frame.reset_index(drop=True)
    row, seen = pairs["row"].to_numpy() - 1, pairs.training_row.to_numpy() - 1
    assert (row == np.repeat(np.arange(500), 5)).all() and (found.part[seen] == "train").all()
    assert np.allclose(pairs.radius, Y[seen, 0]) and np.allclose(pairs[["x", "y"]], X[seen])
    own = (found.part[row] == "train").to_numpy() & (pairs["rank"] == 1)
    assert (seen[own] == row[own]).all()  # a training row is most like itself
    assert np.median(np.abs(Y[seen] - Y[row])) < 0.1  # the range is 2


def test_branches_and_a_label(here, capsys):
    X, y, _ = feature_example("torus x", 900, random_state=0)
    side = np.where(X[:, 1] > 0, "left", "right")
    write_table("t.csv", {**dict(zip("abc", X.T)), "x": y[:, 0], "side": side})
    fit("t.csv --feature x --label side --scale none --out out")
    summary, branches = json_of("out"), pd.read_csv("out/branches.csv")
    assert summary["columns"] == ["a", "b", "c"] and summary["label"]["share"] > 0.6
    assert summary["loops"] == 1 and summary["branches"] == 4
    # the hole begins at -1: at -1 + d its two sides are 2 sqrt(2 d) apart, and a row of the 720 that are
    # fitted has an area of 8 pi^2 / 720, so that d = 0.1 is 2.7 spacings of the rows
    (met, at), low, high = branches.joins[0].split(" at "), branches.lowest_x, branches.highest_x
    assert met == "1, 2" and float(at) == pytest.approx(-1, abs=0.1) and (low < high).all()
    assert all(min(low[0], low[b]) <= float(at) <= max(high[0], high[b]) for b in (1, 2))
    assert set(branches.mostly_side[1:3]) == {"left", "right"}
    middle = np.abs(y[:, 0]) < 0.8
    branch = frames_of("out")[0].branch.to_numpy()
    assert np.mean(branches.mostly_side.to_numpy()[branch[middle]] == side[middle]) > 0.95
    # the two sides have opposite signs of b, and differ in no other column
    contrast = pd.read_csv("out/branch_columns.csv").filter(["first", "second", "column"])
    assert contrast.to_numpy().tolist() == [[1, 2, "b"]]
    run(f"counterparts out/model.npz t.csv --row {y.argmin() + 1} --branch 3 --out -")
    assert "no training row of branch 3 reaches this value" in capsys.readouterr().err
    run("counterparts out/model.npz t.csv --row 1 --out c.npy", 2)
    assert "cannot hold the words of column 'must_change'" in capsys.readouterr().err


def test_a_feature_that_rows_know_nothing_of(here, capsys):
    rng = np.random.default_rng(0)
    write_table("d.csv", {"x": rng.normal(size=150), "y": rng.normal(size=150)})
    fit("d.csv --feature y --out out")
    printed = capsys.readouterr()
    assert "y is not predicted better than by chance" in printed.out
    assert "idm-nb: warning: On rows not used for fitting, y is not predicted" in printed.err
    page = open("out/report.html").read()
    assert not json_of("out")["verdict"]["beats_chance"] and '"ways": false' in page
    assert page.index("No relation was found") < page.index("data:image")
    assert "do not use predictions or branches" in page


def test_a_feature_that_is_an_angle(here):
    angle = np.degrees(np.arctan2(X[:, 1], X[:, 0]))
    write_table("d.csv", {"x": X[:, 0], "y": X[:, 1], "angle": angle})
    fit("d.csv --feature angle --angle degrees --scale none --out out")
    found = frames_of("out")[0]
    gap = np.abs((found.angle - found.predicted_angle + 180) % 360 - 180)
    assert gap.max() < 10 and 0.8 < np.mean(gap < 2 * found.standard_error)  # in degrees, too


def test_groups_ignored_columns_and_no_rows_held_out(here):
    group = np.repeat(np.arange(100), 5)
    radius = np.where(group % 5, Y[:, 0], np.nan)  # rows without a feature are placed
    write_table("d.csv", {**RING, "radius": radius, "person": group, "name": NAMES})
    fit("d.csv --feature radius --group person --ignore name --out out")
    found = frames_of("out")[0]
    assert found.groupby(group).part.nunique().eq(1).all()
    assert (found.part == "held-out").sum() == 80
    assert ((found.part == "placed") == np.isnan(radius)).all()
    assert np.abs(found.predicted_radius - Y[:, 0])[np.isnan(radius)].max() < 0.2  # the range is 2
    assert json_of("out")["columns"] == ["x", "y"]
    fit("ring.csv --feature radius --holdout 0 --out all")
    assert "held_out" not in json_of("all") and set(frames_of("all")[0].part) == {"train"}


def test_demo_and_the_flow_of_the_paper(here):
    options = "--flow diffusion --iterations 4 --landmarks 300 --regressor kernel --quiet"
    run(f"demo annulus-radius --out o {options}")
    summary = json_of("o")
    assert set(os.listdir("o")) == {*FILES, "annulus-radius.csv"} and summary["iterations"] == 4
    assert summary["parameters"]["flow"] == "DiffusionFlow"
    near = summary["verdict"]["nearest"]
    assert near["in_map"] < 0.1 * near["in_data"]


# what is refused

LINES = {  # what is typed, and what is said
    "fit d.xls --feature r --out o": "save the sheet as .xlsx or CSV UTF-8",
    "fit ring.csv --feature size --out o": "no column 'size'; its columns are x, y, radius",
    "fit ring.csv --out o": "name the feature with --feature COLUMN",
    "transform no.npz ring.csv --out t.csv": "no model file",
    "transform f.npz ring.csv --out t.csv": "not a model saved by idm_nb",
    "transform M less.csv --out t.csv": "no columns 'x', 'y'",
    "predict M ring.csv --index nome --out t.csv": "no column 'nome'",
    "predict M named.csv --index name --out t.npy": "cannot hold the words of column 'name'",
    "alike M ring.csv --out t.csv --count 401": "--count must be at most 400",
    "counterparts M ring.csv --row p9 --out t.csv": "no row with this number or name",
}
CHANGED = {  # lines that are right, with other tables
    "transform M gap.csv.gz --out t.csv": "gap.csv.gz",
}


def test_refused_in_one_line(here, capsys):
    fit("ring.csv --feature radius --out out")
    (here / "d.xls").write_text("x")
    np.savez("f.npz", a=1)
    tables = {"less.csv": {"x1": X[:, 0]}, "short.csv": {"f": Y[:10, 0]}, "gap.csv.gz": RING}
    for name, table in {**tables, "named.csv": {**RING, "name": NAMES}}.items():
        write_table(name, table)
    (here / "gap.csv.gz").write_bytes((here / "gap.csv.gz").read_bytes()[:-99])
    there = sorted(os.listdir())
    capsys.readouterr()
    for line, words in {**LINES, **CHANGED}.items():
        run(line.replace(" M ", " out/model.npz ") + " --quiet", status=1 if line in CHANGED else 2)
        said = capsys.readouterr().err
        assert said.startswith("idm-nb: error: ") and words in said and said.count("\n") == 1, said
    assert sorted(os.listdir()) == there


def test_help_reads_like_documentation(capsys):
    for name in ("fit", "transform", "predict", "alike", "counterparts", "demo"):
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args([name, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0 and "Examples:" in text and f"idm-nb {name} " in text
    assert main([]) == 2  # the command alone prints the help
    assert "idm-nb fit measurements.csv --feature outcome" in capsys.readouterr().out


FIRST = {
    "fit --help": b"usage: idm-nb fit",
    "fit ring.csv --feature size --out o": b"idm-nb: reading ring.csv",
}


@linux
@pytest.mark.parametrize("line", FIRST)
def test_the_first_line_comes_at_once(line, here):
    "Within half a second of processor time, start of Python included."
    command, out = [sys.executable, "-m", "idm_nb", *line.split()], subprocess.PIPE
    with subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        assert process.stdout.readline().startswith(FIRST[line])
        used = open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()[11:13]
    assert sum(map(int, used)) / os.sysconf("SC_CLK_TCK") < 0.5


def test_nothing_large_is_imported_for_help():
    code = "import sys; from idm_nb.command.command_line import build_parser; build_parser()"
    code += "; sys.exit(bool({'numpy', 'sklearn', 'pandas'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_of_tables_is_named_with_its_remedy():
    code = "import sys; sys.modules['pandas'] = None; from idm_nb.command.command_line import main"
    run = [sys.executable, "-c", code + "; sys.exit(main(['demo', '--out', 'out']))"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'idm_nb[tables]'" in done.stderr
    assert "pandas" in done.stderr and "Traceback" not in done.stderr


# identifiers, gaps, words


def test_rows_are_named_in_every_output(here, capsys):
    names = np.char.zfill(np.arange(500).astype(str), 3)  # zeros in front belong to a name
    write_table("named.csv", {"patient": names, **RING})
    fit("named.csv --feature radius --index patient --out out")
    for name in ("transform", "predict", "alike"):  # new rows name theirs without being asked
        run(f"{name} out/model.npz named.csv --out {name}.csv --quiet --rows 90")
    for file in ("out/predictions.csv", "out/embedding.csv", "transform.csv", "predict.csv"):
        table = read_table(file, words=["patient"]).frame
        assert list(table)[:2] == ["row", "patient"] and (table.patient == names).all()
    pairs = read_table("alike.csv", words=["training_patient"]).frame
    assert (pairs.training_patient == names[pairs.training_row - 1]).all()
    run("predict out/model.npz named.csv --out - --quiet")
    printed = capsys.readouterr().out.splitlines()[-501:]
    assert (
        printed[0] == "row,patient,predicted_radius,standard_error,lower_90,upper_90,branch,novel"
    )
    assert printed[500].startswith("500,499,") and json_of("out")["index"] == "patient"


def test_raw_columns_and_what_is_new_in_them(here, capsys):
    "A code 07 is a word, and a day stands before its month."
    code, days = np.where(X[:, 0] > 0, "07", "7"), pd.date_range("2024-01-01", periods=500)
    raw = {**RING, "code": code, "day": days.strftime("%d/%m/%Y")}
    raw["radius"] = Y[:, 0] + (code == "7")
    write_table("raw.csv", raw)
    fit("raw.csv --feature radius --words code --out out")
    new = pd.DataFrame(raw).iloc[:6, [4, 1, 0, 3]]  # the sixth of January, or the first of June
    new.assign(code=[*code[:4], "8", None], x=[*X[:5, 0], None]).to_csv("new.csv", index=False)
    for options in ("--rows 3 --jobs 2", ""):  # counted over all parts
        run(f"predict out/model.npz new.csv --out p.csv --quiet {options}")
        said = capsys.readouterr().err
        assert "'code': no word of training, such as '8'; they are none of the known" in said
        assert "column 'x': gaps, and none in training; they are filled, in 1 row\n" in said
        first, second = read_table("p.csv").frame[:4], frames_of("out")[0][:4]
        assert np.allclose(first.predicted_radius, second.predicted_radius)


def test_columns_named_like_results(here):
    names = {"radius": "branch", "x": "row", "y": "z1"}
    columns = {names[n]: c for n, c in RING.items()} | {"self": X[:, 0] ** 2}
    write_table("odd.csv", columns)
    fit("odd.csv --feature branch --out out")
    found, places = frames_of("out")
    assert np.allclose(found.branch_in_table, Y[:, 0]) and (found.branch == 0).all()
    assert found["row"].tolist() == places["row"].tolist() == [*range(1, 501)]
    for name in ("predict", "transform", "alike"):
        run(f"{name} out/model.npz odd.csv --out t.csv --quiet --rows 90")
        assert np.array_equal(read_table("t.csv").frame["row"].unique(), np.arange(1, 501))
    pairs = read_table("t.csv").frame
    assert np.allclose(pairs.row_in_table, X[pairs.training_row - 1, 0])


# files that are fitted in parts

PARTLY = "--feature x --regressor kernel --landmarks 150 --quiet"


def torus_file(path, n=6000, **columns):
    "A table of a torus with the feature x, written in groups of 1000 rows; returns its columns."
    X, y, _ = feature_example("torus x", n, random_state=0)
    noise = 0.1 * np.random.default_rng(1).normal(size=n)
    frame = pd.DataFrame({**dict(zip("abc", X.T)), "x": y[:, 0] + noise, **columns})
    parts = (frame[i : i + 1000] for i in range(0, n, 1000))
    pieces.WRITERS[pieces.ending(path)](path, parts, n)
    return frame


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "feather"])
def test_a_long_file_is_never_whole_in_memory(kind, here):
    "60000 rows of 20 columns take 9.6 MB; the pool of 4000 rows 0.64 MB, a part 1.6 MB."
    values = np.random.default_rng(0).integers(0, 1000, (60_000, 20)) / 8
    frame, path = pd.DataFrame(values, columns=[f"x{k}" for k in range(20)]), f"long.{kind}"
    parts = (frame[k : k + 3000] for k in range(0, 60_000, 3000))
    pieces.WRITERS[pieces.ending(path)](path, parts, 60_000)
    del frame
    roles.read_or_drawn(path, Style(), 200, 0, (), False)  # imports take memory as well
    tracemalloc.start()
    table, count = roles.read_or_drawn(path, Style(), 200, 0, (), False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60_000 and len(table) == 4000 and (np.diff(table.rows) > 0).all()
    assert np.array_equal(table.frame.to_numpy(), values[table.rows - 1])
    assert peak < values.nbytes


def test_a_file_that_is_fitted_in_parts(here):
    frame = torus_file("long.parquet", 20_000)
    run(f"fit long.parquet {PARTLY} --out out")
    predictions, embedding = frames_of("out")
    part, rows = predictions.part.to_numpy(), np.arange(1, 20_001)
    assert (part == "train").sum() == 150 and (part == "held-out").sum() == 600
    assert (predictions["row"] == rows).all() and np.allclose(predictions.x, frame.x, rtol=1e-12)
    summary = json_of("out")
    assert summary["rows"] == 20_000 and set(os.listdir("out")) == set(FILES)
    # the model names its rows by their place in the file, and places the others as it did here
    model = TableMap.load("out/model.npz")
    assert np.array_equal(model.fitted_.rows.numbers, rows[part == "train"])
    told = model.predict(frame[:200], coordinates=True)
    for table in (predictions, embedding):
        both = [name for name in told if name in table]
        assert np.allclose(told[both].astype(float), table[both][:200].astype(float))
    # the errors that were measured on 600 rows hold for all the others
    some = predictions[part == "placed"]
    missed = some.predicted_x - some.x
    r2, covered = 1 - np.mean(missed**2) / some.x.var(), np.abs(missed) < 1.96 * some.standard_error
    assert abs(r2 - summary["held_out"]["r2"]) < 3 * (1 - r2) * np.sqrt(3 / 600)
    assert covered.mean() == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 150))


def test_in_parts_and_in_memory_are_equal(here, monkeypatch):
    "All rows are in the pool, so nothing but the reading differs: words, dates and gaps in some parts."
    k, day = np.arange(3000), pd.date_range("2024-01-01", periods=3000, freq="h")
    columns = dict(
        side=np.where(k % 3, "left", "right"),
        person=np.char.add("p", (k // 4).astype(str)),
        day=day.strftime("%d/%m/%Y"),  # the first part could begin with the month
        code=np.where(k < 2000, "7", "seven"),  # words that appear only in later parts
        late=np.where(k < 2500, None, "yes"),
        wet=np.where(k % 1100 == 0, None, k % 2 > 0),
        gap=np.where(k % 1100 == 0, np.nan, k % 17),
    )
    frame = torus_file("d.csv", 3000, **columns)
    write_table("d.csv", frame.assign(x=frame.x.where(k % 7 > 0)))
    more = f"fit d.csv {PARTLY} --group person --index person"
    run(f"{more} --out memory")
    cut = roles.tables_of
    monkeypatch.setattr(roles, "tables_of", lambda source, style, rows: cut(source, style, 700))
    monkeypatch.setattr(jobs, "AT_ONCE", 700)
    run(f"{more} --jobs 2 --out parts")
    for first, second in zip(frames_of("memory"), frames_of("parts")):
        pd.testing.assert_frame_equal(first, second)
    first, second = json_of("memory"), json_of("parts")
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    for name in ("branches.csv", "relevance.csv"):
        assert open(f"memory/{name}").read() == open(f"parts/{name}").read()


def test_a_fit_in_parts_that_was_stopped_goes_on(here, monkeypatch, capsys):
    torus_file("d.parquet")
    whole, calls, stopped = jobs.row_results, [], [4]

    def counted(table, **options):
        calls.append(len(table))
        if len(calls) == stopped[0]:
            raise KeyboardInterrupt
        return whole(table, **options)

    monkeypatch.setattr(jobs, "row_results", counted)
    monkeypatch.setattr(jobs, "AT_ONCE", 1000)
    run(f"fit d.parquet {PARTLY} --out there/results", status=130)
    assert "stopped" in capsys.readouterr().err and os.listdir("there") == ["results.parts"]
    calls.clear()
    stopped[0] = 0
    run(f"fit d.parquet {PARTLY} --out there/results")
    assert len(calls) == 4 and os.listdir("there") == ["results"]  # three of six, one to compare
    run(f"fit d.parquet {PARTLY} --out again")
    for name in ("predictions.csv", "embedding.csv", "relevance.csv"):
        assert open(f"there/results/{name}").read() == open(f"again/{name}").read()


def test_bad_entries_of_a_long_file_are_known_before_the_work(here, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "write_fitted", lambda *given, **more: pytest.fail("work was done"))
    frame = torus_file("d.csv")
    for value, words in (
        ("?", "type --missing '?' if that marks a gap"),
        ("1e200", "'a' exceeds 1e+100 at data row 5001"),
    ):
        write_table("d.csv", {**frame, "a": frame.a.astype(str).where(frame.index != 5000, value)})
        run(f"fit d.csv {PARTLY} --out o", status=1)
        said = capsys.readouterr().err
        assert words in said and "at data row 5001" in said and said.count("\n") == 1
    write_table("d.csv", {**frame, "x": frame.x.where(np.arange(6000) >= 5990)})
    run(f"fit d.csv {PARTLY} --out o", status=1)
    assert "leaves 8 rows to fit: at least 16 are needed" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["d.csv", "ring.csv"]


def test_an_index_without_a_name(here, capsys):
    pytest.importorskip("openpyxl")
    frame, kinds = (
        pd.DataFrame(RING, index=NAMES)[:200],
        dict(csv="csv", parquet="parquet", xlsx="excel"),
    )
    for kind, name in kinds.items():
        getattr(frame, f"to_{name}")(f"frame.{kind}")
        fit(f"frame.{kind} --feature radius --out {kind}")
        assert json_of(kind)["columns"] == ["x", "y"] and json_of(kind)["held_out"]["r2"] > 0.98
        assert (frames_of(kind)[0]["index"] == NAMES[:200]).all()
    assert "the first column has no name and is taken as the index" in capsys.readouterr().err
