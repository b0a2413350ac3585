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

from idm_nb.app import read_table
from idm_nb.app.command_line import main
from idm_nb.app.results import FILES
from idm_nb.app.tables import write_table
from idm_nb.datasets import feature_example

X, Y, _ = feature_example("annulus radius", 60, random_state=0)
Y = Y[:, 0]
PLAIN = {"x": X[:, 0], "y": X[:, 1], "r": Y}
QUICK = ["--quiet", "--iterations", "1", "--regressor", "ridge", "--holdout", "0.3"]


@pytest.fixture()
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(table, *arguments, out="out"):
    if isinstance(table, dict):
        write_table("d.csv", table)
        table = "d.csv"
    return main(["fit", str(table), "--out", str(out), *QUICK, *map(str, arguments)])


NAMES = [
    "$x_1$",
    "$\\frac",
    "a\nb",
    "<!--<script>",
    "=1+2",
    "@SUM(A1)",
    "-x",
    "ümläut",
    "日本",
    "a,b",
    'q"uote',
    "100%",
    "{0}",
    "a\tb",
    "x" * 300,
    "nan",
    "c;d",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("features", [False, True], ids=["of data", "of features"])
def test_names_of_columns_come_back(features, here):
    rng = np.random.default_rng(0)
    strange = {name: Y + rng.normal(size=60) for name in NAMES}
    named = [f"--feature={name}" for name in ["r"]]
    if features:
        # not the one that argparse takes for an option
        named = ["--feature", *NAMES[:6], *NAMES[7:]]
    data = ["x", "y", "r", "-x"] if features else ["x", "y", *NAMES]
    assert fit({**PLAIN, **strange}, *named) == 0
    assert set(read_table("out/relevance.csv").columns["column"]) == set(data)
    told = read_table("out/predictions.csv").names
    assert all(f"predicted_{name}" in told for name in (named[1:] if features else ["r"]))
    summary = json.loads((here / "out/summary.json").read_text(), parse_constant=pytest.fail)
    assert (
        set(summary["columns"]) == set(data)
        and "<!--<script>" not in (here / "out/report.html").read_text()
    )
    for file in ("predictions.csv", "relevance.csv", "embedding.csv"):
        assert not any(
            line.lstrip('"')[:1] in "=@"
            for line in (here / "out" / file).read_text().splitlines()
            if line
        )


def array_file(name, **arrays):
    return lambda: (np.savez(name, **arrays), name)[1]


def text_file(text):
    def write():
        with open("t.csv", "w") as file:
            file.write(text)
        return "t.csv"

    return write


def numbers(k):
    return text_file("x,y,r\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(*X.T[:, :k], Y[:k])))


YEARS = "2001,2002,2003\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(*X.T, Y))
REFUSED = {
    "complex numbers": (
        array_file("a.npz", X=X + 1j, r=Y),
        [],
        "column 'X0' holds complex numbers",
    ),
    "dates": (
        array_file("a.npz", X=np.arange(60).astype("M8[D]"), r=Y),
        [],
        "column 'X' holds dates or durations; write dates",
    ),
    "words": (
        array_file("a.npz", X=np.array(["a"] * 60), r=Y),
        [],
        "column 'X' holds 'a' at data row 1",
    ),
    "objects": (array_file("a.npz", X=np.array([{}] * 60), r=Y), [], "cannot be read"),
    "three dimensions": (array_file("a.npz", X=np.ones((60, 2, 2)), r=Y), [], "X has 3 dimensions"),
    "a number": (array_file("a.npz", X=3.0, r=Y), [], "X has 0 dimensions"),
    "lengths": (array_file("a.npz", X=X, r=Y[:5]), [], "arrays of different lengths: [5, 60]"),
    "two columns of one name": (array_file("a.npz", X=X, X1=Y, r=Y), [], "two columns named 'X1'"),
    "too large": (
        lambda: {**PLAIN, "x": 1e160 * X[:, 0]},
        [],
        "column 'x' exceeds 1e+100 at data row 1",
    ),
    "years as names": (
        text_file(YEARS),
        ["--feature", "2003"],
        "no column '2003'; its columns are c0, c1, c2 (its",
    ),
    "constant feature": (
        lambda: {**PLAIN, "r": 0 * Y},
        [],
        "feature 'r' has the same value in all rows",
    ),
    "constant columns": (lambda: {"x": 0 * Y, "r": Y}, [], "rows of X are the same point"),
    "one group": (
        lambda: {**PLAIN, "g": ["a"] * 60},
        ["--group", "g"],
        "groups has one label for all rows",
    ),
    "no such group": (lambda: PLAIN, ["--group", "g"], "no column 'g'; its columns are x, y, r"),
    "nothing left": (lambda: PLAIN, ["--ignore", "x", "y"], "no data columns left"),
    "data is feature": (
        lambda: PLAIN,
        ["--columns", "x", "r"],
        "column 'r' is both data and feature",
    ),
    "names and no rows": (text_file("x,y,r\n"), [], "holds column names but no rows"),
    "blanks": (text_file("\n\n \n"), [], "is empty"),
    "a quote that does not end": (text_file('x,y,r\n1,2,"3\n' + "4,5,6\n" * 40), [], "t.csv"),
    "binary": (text_file("\x00\x01,2\n\x03,4"), [], "t.csv"),
    "folder": (lambda: ".", [], "is a folder"),
    "nothing there": (lambda: "none.csv", [], "there is no file none.csv"),
    **{
        f"{k} rows": (numbers(k), ["--holdout", "0"], f"leaves {k} rows to fit: at least 16")
        for k in (1, 2, 4, 8, 15)
    },
    "nearly all held out": (
        lambda: PLAIN,
        ["--holdout", "0.97"],
        "leaves 2 rows to fit: at least 16",
    ),
}


if sys.platform == "linux":
    pipe = lambda: (os.mkfifo("p.csv"), "p.csv")[1]
    REFUSED["a pipe"] = (pipe, [], "is not a regular file")


# here the command has to change, otherwise the table
USAGE = {
    "no such group",
    "data is feature",
    "folder",
    "nothing there",
    "a pipe",
    "years as names",
    "binary",
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_and_options_that_are_refused(name, here, capsys):
    make, options, words = REFUSED[name]
    options = options if "--feature" in options else ["--feature", "r", *options]
    table = make()
    if isinstance(table, dict):
        write_table("d.csv", table)
        table = "d.csv"
    before = sorted(p.name for p in here.iterdir())
    status = 2 if name in USAGE else 1
    assert fit(table, *options, out="made/for/this") == status
    found = capsys.readouterr().err.strip()
    assert found.startswith("idm-nb: error: ") and "\n" not in found and words in found, found
    assert sorted(p.name for p in here.iterdir()) == before  # and no folder was made for it


@pytest.mark.parametrize(
    "option, value",
    [
        ("--holdout", "nan"),
        ("--holdout", "1"),
        ("--holdout", "-0.1"),
        ("--seed", "-1"),
        ("--seed", "x"),
        ("--seed", str(2**32)),
        ("--iterations", "0"),
        ("--iterations", "2.5"),
        ("--regressor", "magic"),
        ("--flow", "x"),
        ("--odds", "nan"),
        ("--tau", "inf"),
        ("--landmarks", "few"),
    ],
)
def test_options_that_are_refused_at_once(option, value, here, capsys):
    with pytest.raises(SystemExit) as stop:
        fit(PLAIN, "--feature", "r", f"{option}={value}")
    assert stop.value.code == 2 and f"argument {option}: " in capsys.readouterr().err


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    "A file of 60 rows and the folder of its results."
    folder = tmp_path_factory.mktemp("fit")
    write_table(folder / "d.csv", PLAIN)
    assert fit(folder / "d.csv", "--feature", "r", out=folder / "out") == 0
    return folder / "d.csv", folder / "out" / "model.npz"


PLACES = {
    "a file": ("taken", "is a file; give a folder"),
    "below a file": ("taken/deep", "cannot be written"),
    "a device": ("/dev/full", "is a file; give a folder"),
    "a name too long": ("b" * 256, "File name too long"),
    "/proc": ("/proc/idm-nb", "cannot be written"),
    "a folder in the place of a file": (
        "old",
        "old/model.npz is not a regular file and is not replaced",
    ),
}


@linux
@pytest.mark.parametrize("name", PLACES)
def test_places_that_cannot_be_written_are_known_before_the_work(
    name, here, capsys, model, monkeypatch
):
    (here / "taken").write_text("mine")
    (here / "old" / "model.npz").mkdir(parents=True)
    monkeypatch.setattr(
        "idm_nb.app.command_line.build_model", lambda options: pytest.fail("work was done")
    )
    out, words = PLACES[name]
    assert fit(model[0], "--feature", "r", out=out) == 2
    found = capsys.readouterr().err
    assert words in found and found.count("\n") == 1
    assert (
        sorted(p.name for p in here.iterdir()) == ["old", "taken"]
        and (here / "taken").read_text() == "mine"
    )


TARGETS = {
    "no ending": ("t", "the ending must be one of .csv"),
    "no folder": ("no/t.csv", "there is no folder no"),
    "a folder": ("folder.csv", "is not a regular file and is not replaced"),
    "a pipe": ("pipe.csv", "is not a regular file and is not replaced"),
    "a name too long": ("c" * 252 + ".csv", "File name too long"),
}


@linux
@pytest.mark.parametrize("name", TARGETS)
def test_files_that_cannot_be_written(name, here, capsys, model):
    (here / "folder.csv").mkdir()
    os.mkfifo(here / "pipe.csv")
    data, file = model
    out, words = TARGETS[name]
    assert main(["transform", str(file), str(data), "--out", out, "--quiet"]) == 2
    found = capsys.readouterr().err
    assert (
        words in found
        and found.count("\n") == 1
        and sorted(os.listdir()) == ["folder.csv", "pipe.csv"]
    )


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
    return subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, **options)


def test_names_that_cannot_be_printed(here):
    write_table("d.csv", {"ümläut": X[:, 0], "größe": X[:, 1], "r": Y})
    plain = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii:strict",
    }
    run = command(
        "fit", "d.csv", "--feature", "r", "--out", "out", *QUICK, env=plain, stdout=subprocess.PIPE
    )
    error = run.communicate(timeout=120)[1].decode()
    assert run.returncode == 0 and "Traceback" not in error, error
    assert {p.name for p in (here / "out").iterdir()} == set(FILES)


def no_reader():
    "A pipe whose other end is closed."
    ends = os.pipe()
    os.close(ends[0])
    return os.fdopen(ends[1], "w")


@linux
@pytest.mark.parametrize(
    "output, code", [(lambda: open("/dev/full", "w"), 1), (no_reader, 1)], ids=["full", "closed"]
)
def test_output_that_nobody_can_read(output, code, here, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", output())
    assert fit(PLAIN, "--feature", "r") == code
    assert {p.name for p in (here / "out").iterdir()} == set(FILES)


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_stopped(number, here):
    write_table("d.csv", {f"x{k}": np.random.default_rng(k).normal(size=2000) for k in range(8)})
    run = command(
        "fit",
        "d.csv",
        "--feature",
        "x0",
        "--out",
        "a/b",
        "--regressor",
        "lengths",
        stdout=subprocess.PIPE,
    )
    assert b"2000 rows" in run.stderr.readline()  # it works now, for many seconds
    time.sleep(0.5)
    run.send_signal(number)
    error = run.communicate(timeout=60)[1].decode()
    assert run.returncode == 130 and "idm-nb: stopped" in error and "Traceback" not in error
    assert os.listdir() == ["d.csv"]
