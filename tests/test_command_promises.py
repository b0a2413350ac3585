"""The command with strange names, tables, places and ends: one sentence or all of the results."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from book import linux

from idm_nb.command.command_line import main
from idm_nb.command.jobs import FILES
from idm_nb.datasets import feature_example
from idm_nb.tables import TableMap, read_table
from idm_nb.tables.pieces import write_table

pd = pytest.importorskip("pandas")
X, Y, _ = feature_example("annulus radius", 60, random_state=0)
Y = Y[:, 0]
PLAIN = {"x": X[:, 0], "y": X[:, 1], "r": Y}
QUICK = "--quiet --iterations 1 --regressor ridge --holdout 0.3".split()


@pytest.fixture()
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(table, *arguments, out="out"):
    if isinstance(table, dict):
        write_table("d.csv", table)
        table = "d.csv"
    return main(["fit", str(table), "--out", str(out), *QUICK, *map(str, arguments)])


NAMES = '$x_1$ $\\frac <!--<script> =1+2 @SUM(A1) ümläut 日本 a,b q"uote 100% {0} nan c;d self NaN'
NAMES = [*NAMES.split(), "a\nb", "a\tb", "x" * 300, "-x"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("features", [False, True], ids=["of data", "of features"])
def test_names_of_columns_come_back(features, here):
    rng = np.random.default_rng(0)
    strange = {name: Y + rng.normal(size=60) for name in NAMES}
    named = ["--feature", *NAMES[:-1]] if features else ["--feature=r"]  # -x looks like an option
    data = ["x", "y", "r", "-x"] if features else ["x", "y", *NAMES]
    words = np.where(Y > 2, "</script>", "$\\frac")
    assert fit({**PLAIN, **strange, "w": words}, *named) == 0
    relevance = pd.read_csv("out/relevance.csv", keep_default_na=False, skipinitialspace=True)
    assert set(relevance.column) == {*data, "w"}
    told = read_table("out/predictions.csv").names
    assert all(f"predicted_{name}" in told for name in (named[1:] if features else ["r"]))
    summary = json.loads(open("out/summary.json").read(), parse_constant=pytest.fail)
    page = open("out/report.html", encoding="utf-8").read()
    assert set(summary["columns"]) == {*data, "w"} and "<!--<script>" not in page
    reader = json.JSONDecoder(parse_constant=pytest.fail)
    found = reader.raw_decode(page.partition(", unpack(")[2])[0]
    assert set(found["columns"]) <= {*data, "w"} and len(found["names"]) == 60
    for file in ("predictions.csv", "relevance.csv", "embedding.csv"):
        lines = open(f"out/{file}", encoding="utf-8").read().splitlines()
        assert not any(line.lstrip('"')[:1] in "=@" for line in lines if line)


def array_file(**arrays):
    return lambda: (np.savez("a.npz", **arrays), "a.npz")[1]


def text_file(text):
    return lambda: (open("t.csv", "w").write(text), "t.csv")[1]


def object_file():
    np.save("o.npy", np.array([["a", 1.0]] * 60, dtype=object))
    return "o.npy"


def json_file():
    with open("u.json", "w") as file:
        json.dump({"x": ["mm", *map(str, Y)], "r": [0, *Y]}, file)
    return "u.json"


LINES = [f"{a},{b},{c}\n" for a, b, c in zip(*X.T, Y)]
FEW = "leaves {} rows to fit: at least 16"
REFUSED = {  # how the table is made, options, and what is said
    "complex numbers": (array_file(X=Y + 1j, r=Y), "", "column 'X' holds complex numbers"),
    "objects": (array_file(X=np.array([{}] * 60), r=Y), "", "cannot be read"),
    "objects in one array": (
        object_file,
        "",
        "o.npy cannot be read as numbers: write words, dates and gaps as CSV",
    ),
    "semicolons": (text_file("x;y;r\n" + "p;1;2;4\n" * 60), "", "4 columns in line 2; correct it"),
    "minus infinity": (
        lambda: {**PLAIN, "x": [-np.inf, 1e200, -np.inf, *X[3:, 0]]},
        "",
        "'x' is not finite at data row 1, and 1 more; type --missing=-inf if that marks a gap",
    ),
    "no line of units": (json_file, "", "not a number; delete it if that line holds units"),
    "three dimensions": (array_file(X=np.ones((60, 2, 2)), r=Y), "", "X has 3 dimensions"),
    "lengths": (array_file(X=X, r=Y[:5]), "", "arrays of different lengths: [5, 60]"),
    "one name twice": (array_file(X=X, X1=Y, r=Y), "", "two columns named 'X1'"),
    "too large": (lambda: {**PLAIN, "x": 1e160 * X[:, 0]}, "", "'x' exceeds 1e+100 at data row 1"),
    "constant feature": (lambda: {**PLAIN, "r": 0 * Y}, "", "'r' has the same value in all rows"),
    "constant columns": (lambda: {"x": 0 * Y, "r": Y}, "", "no data columns left"),
    "one group": (lambda: {**PLAIN, "g": ["a"] * 60}, "--group g", "groups has one label for all"),
    "no such group": (lambda: PLAIN, "--group g", "no column 'g'; its columns are x, y, r"),
    "data is feature": (lambda: PLAIN, "--columns x r", "column 'r' is both data and feature"),
    "names only": (text_file("x,y,r\n"), "", "holds column names but no rows"),
    "two problems": (text_file("x,y,r\n" + "1,2,4\n" * 9 + "inf,1 mm,1"), "", "these columns:"),
    "blanks": (text_file("\n\n \n"), "", "is empty"),
    "a quote that does not end": (text_file('x,y,r\n1,2,"3\n' + "4,5,6\n" * 40), "", "t.csv"),
    "binary": (text_file("\x00\x01,2\n\x03,4"), "", "t.csv"),
    "folder": (lambda: ".", "", "is a folder"),
    "15 rows": (text_file("x,y,r\n" + "".join(LINES[:15])), "--holdout 0", FEW.format(15)),
    "nearly all held out": (lambda: PLAIN, "--holdout 0.97", FEW.format(2)),
}
if sys.platform == "linux":
    REFUSED["a pipe"] = (lambda: (os.mkfifo("p.csv"), "p.csv")[1], "", "is not a regular file")
# here the command has to change, otherwise the table
USAGE = ("no such group", "data is feature", "folder", "a pipe")


@pytest.mark.parametrize("name", REFUSED)
def test_tables_and_options_that_are_refused(name, here, capsys):
    make, options, words = REFUSED[name]
    table = make()
    if isinstance(table, dict):
        write_table("d.csv", table)
        table = "d.csv"
    before, status = sorted(os.listdir()), 2 if name in USAGE else 1
    assert fit(table, "--feature", "r", *options.split(), out="made/for/this") == status
    found = capsys.readouterr().err.strip()
    assert found.startswith("idm-nb: error: ") and words in found, found
    assert "\n" not in found or name == "two problems"
    assert sorted(os.listdir()) == before  # and no folder was made for it


OPTIONS = "--holdout=nan --holdout=1 --holdout=-0.1 --seed=-1 --seed=x --seed=4294967296 --tau=inf "
OPTIONS += (
    "--tau=1 --tau=1.5 --iterations=0 --iterations=2.5 --regressor=magic --flow=x --log-odds=nan "
)


@pytest.mark.parametrize("option", [*OPTIONS.split(), "--landmarks=few", "--jobs=0"])
def test_options_that_are_refused_at_once(option, here, capsys):
    with pytest.raises(SystemExit) as stop:
        fit(PLAIN, "--feature", "r", option)
    assert stop.value.code == 2 and f"argument {option.split('=')[0]}: " in capsys.readouterr().err
    for line in ("fit d.csv --feature r", "dance", "demo planet --out x", "predict m.npz"):
        with pytest.raises(SystemExit, match="2"):
            main(line.split())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    "A file of 60 rows and the folder of its results."
    folder = tmp_path_factory.mktemp("fit")
    write_table(folder / "d.csv", PLAIN)
    assert fit(folder / "d.csv", "--feature", "r", out=folder / "out") == 0
    return folder / "d.csv", folder / "out" / "model.npz"


PLACES = {
    ("fit", "taken"): "is a file; give a folder",
    ("fit", "b" * 256): "File name too long",
    ("fit", "/proc/idm-nb"): "cannot be written",
    ("fit", "old"): "old/model.npz is not a regular file and is not replaced",
    ("transform", "t"): "the ending must be one of .csv",
    ("transform", "no/t.csv"): "there is no folder no",
    ("transform", "old.csv"): "is not a regular file and is not replaced",
    ("counterparts", "c" * 252 + ".csv"): "File name too long",
}


@linux
@pytest.mark.parametrize("name, out", PLACES)
def test_places_that_cannot_be_written_are_known_before_the_work(
    name, out, here, capsys, model, monkeypatch
):
    (here / "taken").write_text("mine")
    for folder in ("old/model.npz", "old.csv"):
        (here / folder).mkdir(parents=True)
    os.mkfifo("pipe.csv")
    for work in ("TableMap.fit", "TableMap.counterparts", "results_of"):
        done = lambda *given: pytest.fail("work was done")
        monkeypatch.setattr(f"idm_nb.command.jobs.{work}", done)
    given = [*map(str, model[::-1]), "--out", out, "--quiet", *["--row", "3"] * (name[0] == "c")]
    status = fit(model[0], "--feature", "r", out=out) if name == "fit" else main([name, *given])
    found = capsys.readouterr().err
    assert status == 2 and PLACES[name, out] in found and found.count("\n") == 1
    assert sorted(os.listdir()) == ["old", "old.csv", "pipe.csv", "taken"]
    assert open("taken").read() == "mine"


def test_an_empty_cell_of_one_column_is_a_row(here):
    "pandas writes it as two quotes, and a spreadsheet as a blank line."
    assert fit({"gdp": X[:, 0], "r": X[:, 0] ** 2}, "--feature", "r") == 0
    for text in ('gdp\n1\n""\n3\n', "gdp\n1\n\n3\n"):
        (here / "new.csv").write_text(text)
        for rows in ("1", "9"):
            given = "predict out/model.npz new.csv --out p.csv --quiet --rows".split()
            assert main([*given, rows]) == 0
            found = pd.read_csv("p.csv")
            assert found["row"].tolist() == [1, 2, 3] and found.novel.notna().all()
            alone = TableMap.load("out/model.npz").predict({"gdp": [1.0, None, 3.0]})
            assert np.allclose(found.predicted_r, alone.predicted_r)


@linux
def test_links_and_long_names(here, model):
    data, file = model
    (here / "link.csv").symlink_to("real.csv")
    for out in ("link.csv", "c" * 251 + ".csv"):
        assert main(["transform", str(file), str(data), "--out", out, "--quiet"]) == 0
    assert (here / "link.csv").is_symlink() and len(read_table("real.csv")) == 60


def command(*arguments, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    arguments = [sys.executable, "-m", "idm_nb", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, env=environment, stderr=pipe, stdout=pipe, **options)


def test_names_that_cannot_be_printed(here):
    write_table("d.csv", {"ümläut": X[:, 0], "größe": X[:, 1], "r": Y})
    plain = dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    plain["PYTHONIOENCODING"] = "ascii:strict"
    run = command("fit", "d.csv", "--feature", "r", "--out", "out", *QUICK[1:], env=plain)
    error = run.communicate(timeout=120)[1].decode()
    assert run.returncode == 0 and "Traceback" not in error, error
    assert set(os.listdir("out")) == set(FILES)


def no_reader():
    "A pipe whose other end is closed."
    ends = os.pipe()
    os.close(ends[0])
    return os.fdopen(ends[1], "w")


@linux
@pytest.mark.parametrize(
    "output", [lambda: open("/dev/full", "w"), no_reader], ids=["full", "closed"]
)
def test_output_that_nobody_can_read(output, here, monkeypatch):
    monkeypatch.setattr(sys, "stdout", output())
    assert fit(PLAIN, "--feature", "r") == 1
    assert set(os.listdir("out")) == set(FILES)


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_stopped(number, here):
    write_table("d.csv.gz", {f"x{k}": np.random.default_rng(k).normal(size=2000) for k in range(8)})
    run = command(*"fit d.csv.gz --feature x0 --out a/b --regressor lengths".split())
    while b"x7 " not in run.stderr.readline():  # it works now, for many seconds
        assert run.poll() is None
    time.sleep(0.5)
    run.send_signal(number)
    error = run.communicate(timeout=60)[1].decode()
    assert run.returncode == 130 and "idm-nb: stopped" in error and "Traceback" not in error
    assert os.listdir() == ["d.csv.gz"]
