"""The command `idm-nb`, from files to folders, and its errors."""

import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import idm_nb
from idm_nb.app import read_table, tables
from idm_nb.app.command_line import build_parser, load_inputs, main
from idm_nb.app.tables import write_table
from idm_nb.core import load
from idm_nb.datasets import feature_example

X, Y, _ = feature_example("annulus radius", 500, random_state=0)
RESULTS = {
    "embedding.csv",
    "branches.csv",
    "branch_columns.csv",
    "predictions.csv",
    "relevance.csv",
    "model.npz",
    "summary.json",
    "report.html",
}


@pytest.fixture()
def ring(tmp_path):
    write_table(tmp_path / "ring.csv", dict(zip(["x", "y", "radius"], [*X.T, Y[:, 0]])))
    return tmp_path / "ring.csv"


def fit(*arguments):
    return main(["fit", *map(str, arguments), "--quiet", "--iterations", "1"])


def test_fit_and_transform(ring, tmp_path, capsys):
    out = tmp_path / "out"
    assert fit(ring, "--feature", "radius", "--out", out) == 0
    assert {p.name for p in out.iterdir()} == RESULTS
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"] == 500 and summary["held_out"]["rows"] == 100
    assert summary["held_out"]["r2"] > 0.98 and summary["held_out"]["coverage"] > 0.9
    assert summary["verdict"]["beats_chance"] and summary["branches"] == summary["pieces"] == 1
    assert sum(summary["weights"].values()) == pytest.approx(1)
    predictions, embedding = read_table(out / "predictions.csv"), read_table(out / "embedding.csv")
    columns = [
        "row",
        "part",
        "radius",
        "predicted_radius",
        "standard_error",
        "branch",
        "foreign",
    ]
    assert predictions.names == columns and len(predictions) == 500
    truth, guess, error = predictions.numbers(columns[2:5]).T
    # standard errors are calibrated on the rows of training, and a few rows have most of the squared error
    assert np.sqrt(np.mean((guess - truth) ** 2)) == pytest.approx(
        np.sqrt(np.mean(error**2)), rel=0.5
    )
    page, printed = (out / "report.html").read_text(), capsys.readouterr().out
    # the map, predictions, steps, neighbours, columns and the flow; of one branch there is no graph
    assert page.count("data:image/png") == 6 and "://" not in page
    assert f"{summary['held_out']['r2']:.4f}" in printed
    assert printed.strip().endswith(" ".join(summary["verdict"]["sentences"]))

    moved = tmp_path / "moved.csv"
    assert (
        main(["transform", str(out / "model.npz"), str(ring), "--out", str(moved), "--quiet"]) == 0
    )
    again = read_table(moved)
    assert np.allclose(again.numbers(["z1", "z2"]), embedding.numbers(["z1", "z2"]), atol=1e-9)
    assert np.array_equal(again.columns["foreign"], predictions.columns["foreign"])
    assert idm_nb.load(out / "model.npz").columns == ["x", "y"]

    for ending in ("npz", "parquet", "feather", "csv.gz", "tsv"):
        file = tmp_path / f"moved.{ending}"
        told = ["transform", str(out / "model.npz"), str(ring), "--out", str(file), "--quiet"]
        assert main(told) == 0
        found = read_table(file)
        assert found.names == again.names and found.columns["foreign"].dtype == bool
        assert np.array_equal(found.numbers(again.names), again.numbers(again.names))


def test_alike(ring, tmp_path):
    out, found = tmp_path / "out", tmp_path / "alike.csv"
    assert main(["fit", str(ring), "--feature", "radius", "--out", str(out), "--quiet"]) == 0
    alike = lambda *a: main(["alike", str(out / "model.npz"), *map(str, a), "--quiet"])
    assert alike(ring, "--out", found, "--count", 5) == 0
    table, part = read_table(found), read_table(out / "predictions.csv").columns["part"]
    row, rank, seen = table.numbers(["row", "rank", "training_row"]).astype(int).T
    assert row.tolist() == np.repeat(np.arange(1, 501), 5).tolist() and rank[:5].tolist() == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert (part[seen - 1] == "train").all()
    own = (part[row - 1] == "train") & (rank == 1)
    assert np.array_equal(seen[own], row[own])  # a training row is most like itself
    assert np.allclose(table.numbers(["radius"])[:, 0], Y[seen - 1, 0])
    # near in the map is near in the feature, whose range is 2
    assert np.abs(Y[seen - 1] - Y[row - 1]).max() < 0.1


def test_branches_and_a_label(tmp_path):
    X, y, _ = feature_example("torus x", 900, random_state=0)
    side = np.where(X[:, 1] > 0, "left", "right")
    write_table(tmp_path / "t.csv", {**dict(zip("abc", X.T)), "x": y[:, 0], "side": side})
    out = tmp_path / "out"
    assert (
        fit(
            tmp_path / "t.csv", "--feature", "x", "--label", "side", "--scale", "none", "--out", out
        )
        == 0
    )
    summary, branches = (
        json.loads((out / "summary.json").read_text()),
        read_table(out / "branches.csv"),
    )
    assert (
        summary["columns"] == ["a", "b", "c"] and summary["loops"] == 1 and summary["branches"] == 4
    )
    low, high = branches.numbers(["lowest_x", "highest_x"]).T
    # the hole begins at -1: at -1 + d its two sides are 2 sqrt(2 d) apart, and a row of the 720 that are
    # fitted has an area of 8 pi^2 / 720, so that d = 0.1 is 2.7 spacings of the rows
    met, at = branches.columns["joins"][0].split(" at ")
    assert met == "1, 2" and float(at) == pytest.approx(-1, abs=0.1) and np.all(low < high)
    assert all(
        low[[0, b]].min() <= float(at) <= high[[0, b]].max() for b in (1, 2)
    )  # a join lies in the ranges
    assert set(branches.columns["mostly_side"][1:3]) == {"left", "right"}
    middle = np.abs(y[:, 0]) < 0.8
    found = read_table(out / "predictions.csv").numbers(["branch"])[:, 0].astype(int)
    assert np.mean(branches.columns["mostly_side"][found[middle]] == side[middle]) > 0.95
    page = (out / "report.html").read_text()
    # one more of the map and of the steps, by branch, the graph, and the effects of the columns
    assert page.count("data:image/png") == 10 and "mostly_side" in page
    contrast = read_table(out / "branch_columns.csv")
    pair = contrast.numbers(["first_branch", "second_branch"])
    # the two sides have opposite signs of b, and differ in no other column
    assert pair.tolist() == [[1, 2]] and contrast.columns["column"].tolist() == ["b"]


def test_foreign_rows(ring, tmp_path):
    out, moved = tmp_path / "out", tmp_path / "moved.csv"
    assert fit(ring, "--feature", "radius", "--out", out) == 0
    write_table(tmp_path / "far.csv", {"x": [*X[:3, 0], 40.0], "y": [*X[:3, 1], 40.0]})
    arguments = [str(out / "model.npz"), str(tmp_path / "far.csv"), "--out", str(moved), "--quiet"]
    assert main(["transform", *arguments]) == 0
    assert read_table(moved).columns["foreign"].tolist() == [False, False, False, True]


def test_a_feature_that_rows_know_nothing_of(tmp_path, capsys):
    rng = np.random.default_rng(0)
    write_table(tmp_path / "d.csv", {"x": rng.normal(size=150), "y": rng.normal(size=150)})
    assert fit(tmp_path / "d.csv", "--feature", "y", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "the feature is not predicted better than by chance" in printed.out
    assert "idm-nb: warning: the feature" in printed.err
    assert not json.loads((tmp_path / "out/summary.json").read_text())["verdict"]["beats_chance"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "npy", "npz", "parquet", "feather"])
def test_formats(ending, tmp_path):
    data = tmp_path / f"data.{ending}"
    feature = ["--feature", "y"]
    if ending == "npy":
        np.save(data, np.c_[X, Y])
        feature = ["--feature", "c2"]
    elif ending == "npz":
        np.savez(data, X=X, y=Y)
    else:
        write_table(data, {"a": X[:, 0], "b": X[:, 1], "y": Y[:, 0]})
    assert fit(data, *feature, "--out", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out/summary.json").read_text())["held_out"]["r2"] > 0.98


def test_feature_from_a_second_file_and_angle(tmp_path):
    np.save(tmp_path / "X.npy", X)
    degrees = np.degrees(np.arctan2(X[:, 1], X[:, 0]))
    write_table(tmp_path / "angle.csv", {"angle": degrees})
    out = tmp_path / "out"
    arguments = ("--feature-file", tmp_path / "angle.csv", "--angle", "degrees", "--scale", "none")
    assert fit(tmp_path / "X.npy", *arguments, "--out", out) == 0
    names = ["angle", "predicted_angle", "standard_error"]
    table = read_table(out / "predictions.csv").numbers(names)
    gap = (table[:, 0] - table[:, 1] + 180) % 360 - 180
    assert np.abs(gap).max() < 10
    assert 0.8 < np.mean(np.abs(gap) < 2 * table[:, 2])  # the errors are in degrees, too


@pytest.mark.parametrize("regressor", ["local", "kernel", "lengths"])
def test_regressor(regressor, ring, tmp_path):
    assert fit(ring, "--feature", "radius", "--out", tmp_path, "--regressor", regressor) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["parameters"]["regressor"] == regressor and summary["held_out"]["r2"] > 0.98


def test_a_mixture_with_trees(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0, 2.0, -1.0) * np.sign(X[:, 1]) + 0.1 * rng.normal(size=400)
    data, out, moved = tmp_path / "d.csv", tmp_path / "out", tmp_path / "moved.csv"
    write_table(data, {**dict(zip("abc", X.T)), "y": y})
    assert fit(data, "--feature", "y", "--out", out) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["weights"]["boosting"] > 0.5 and summary["held_out"]["r2"] > 0.9
    relevance = read_table(out / "relevance.csv")
    assert relevance.columns["local_above_chance"].tolist() == [True, True, False]
    assert (
        main(["transform", str(out / "model.npz"), str(data), "--out", str(moved), "--quiet"]) == 0
    )
    written = read_table(out / "predictions.csv").numbers(["predicted_y", "standard_error"])
    assert np.allclose(read_table(moved).numbers(["predicted_y", "standard_error"]), written)


def test_the_flow_of_the_paper(ring, tmp_path):
    arguments = [
        "--out",
        str(tmp_path / "out"),
        "--flow",
        "diffusion",
        "--iterations",
        "4",
        "--quiet",
    ]
    assert main(["fit", str(ring), "--feature", "radius", *arguments]) == 0
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["parameters"]["flow"] == "DiffusionFlow" and summary["iterations"] == 4
    assert summary["held_out"]["recall"] > 4 * summary["held_out"]["recall_before"]


def test_groups_and_ignored_columns(tmp_path):
    group = np.repeat(np.arange(100), 5)
    names = np.char.add("n", np.arange(500).astype(str))
    columns = {"x": X[:, 0], "y": X[:, 1], "person": group, "name": names, "r": Y[:, 0]}
    write_table(tmp_path / "d.csv", columns)
    out = tmp_path / "out"
    assert (
        fit(
            tmp_path / "d.csv",
            "--feature",
            "r",
            "--group",
            "person",
            "--ignore",
            "name",
            "--out",
            out,
        )
        == 0
    )
    part = np.loadtxt(out / "embedding.csv", delimiter=",", skiprows=1, usecols=1, dtype=str)
    assert all(len(set(part[group == g])) == 1 for g in range(100))
    assert (part == "held-out").sum() == 100
    assert json.loads((out / "summary.json").read_text())["columns"] == ["x", "y"]


def test_no_rows_held_out(ring, tmp_path):
    assert fit(ring, "--feature", "radius", "--holdout", "0", "--out", tmp_path / "out") == 0
    assert "held_out" not in json.loads((tmp_path / "out/summary.json").read_text())


def test_landmarks_are_fitted_and_the_other_rows_placed(ring, tmp_path, capsys):
    out = tmp_path / "out"
    assert fit(ring, "--feature", "radius", "--landmarks", "150", "--out", out) == 0
    part = np.loadtxt(out / "predictions.csv", delimiter=",", skiprows=1, usecols=1, dtype=str)
    rows, kept = len(part), (part == "held-out").sum()
    assert (part == "train").sum() == 150 and (part == "placed").sum() == rows - 150 - kept
    summary = json.loads((out / "summary.json").read_text())
    assert summary["held_out"]["rows"] == kept > 0 and summary["parameters"]["landmarks"] == 150
    # the model is of those rows, and names them by their place in the table
    assert load(out / "model.npz").rows.tolist() == (np.flatnonzero(part == "train") + 1).tolist()
    assert (
        main(
            [
                "alike",
                str(out / "model.npz"),
                str(ring),
                "--count",
                "1",
                "--out",
                str(tmp_path / "a.csv"),
            ]
        )
        == 0
    )
    found = np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1, usecols=(0, 2), dtype=int)
    assert set(found[:, 1]) <= set(np.flatnonzero(part == "train") + 1)
    code = fit(ring, "--feature", "radius", "--landmarks", "100000", "--out", tmp_path / "other")
    refused(capsys, code, "landmarks must be", "100000")


def test_demo(tmp_path):
    assert (
        main(
            ["demo", "annulus-radius", "--out", str(tmp_path / "o"), "--quiet", "--iterations", "1"]
        )
        == 0
    )
    assert {p.name for p in (tmp_path / "o").iterdir()} == RESULTS | {"annulus-radius.csv"}


def refused(capsys, code, *words, status=2):
    message = capsys.readouterr().err
    assert code == status and "Traceback" not in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    "content, words",
    [
        ("", ("is empty",)),
        ("x,y,radius\n", ("no rows",)),
        ("x,y,radius\n1,2\n", ("has 3 names but 2 columns",)),
        ("x,y,radius\n1,2,3\n4,five,6\n", ("column 'y' holds 'five' at data row 2", "--ignore")),
        ("x,y,radius\n1,2,3\n4,,6\n", ("column 'y' has a gap at data row 2", "--drop-gaps")),
        ("x,y,radius\n1,2,3\n4,nan,6\n", ("column 'y' has a gap at data row 2",)),
        ("x,y,radius\n1,2,3\n4,5,inf\n", ("column 'radius' is not finite at data row 2",)),
        ("radius\n1\n2\n", ("no data columns",)),
        ("x,radius\n" + "1,2\n3,4\n" * 5, ("leaves 8 rows to fit", "at least 16")),
    ],
)
def test_bad_tables(content, words, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text(content)
    code = fit(tmp_path / "bad.csv", "--feature", "radius", "--out", tmp_path / "o")
    refused(capsys, code, *words, status=1)
    assert not (tmp_path / "o").exists()


def test_unreadable_files(ring, tmp_path, capsys):
    refused(
        capsys,
        fit(tmp_path / "none.csv", "--feature", "r", "--out", tmp_path / "o"),
        "there is no file",
    )
    (tmp_path / "d.xlsx").write_text("x")
    refused(
        capsys,
        fit(tmp_path / "d.xlsx", "--feature", "r", "--out", tmp_path / "o"),
        "unknown format",
    )
    (tmp_path / "d.npz").write_text("x")
    code = fit(tmp_path / "d.npz", "--feature", "r", "--out", tmp_path / "o")
    refused(capsys, code, "cannot be read", status=1)
    code = fit(ring, "--feature", "size", "--out", tmp_path / "o")
    refused(capsys, code, "no column 'size'", "x, y, radius")
    refused(capsys, fit(ring, "--out", tmp_path / "o"), "--feature COLUMN")
    write_table(tmp_path / "short.csv", {"f": Y[:10, 0]})
    code = fit(ring, "--feature-file", tmp_path / "short.csv", "--out", tmp_path / "o")
    refused(capsys, code, "has 10 rows but", "has 500", status=1)


def test_folders_that_cannot_be_written(ring, tmp_path, capsys):
    refused(capsys, fit(ring, "--feature", "radius", "--out", ring), "is a file; give a folder")
    refused(capsys, fit(ring, "--feature", "radius", "--out", ring / "deeper"), "cannot be written")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ring.csv"]


def test_nothing_half_written(ring, tmp_path, capsys, monkeypatch):
    import idm_nb.app.results as module

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_model", full)
    refused(
        capsys, fit(ring, "--feature", "radius", "--out", tmp_path / "o"), "No space left", status=1
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ring.csv"]


def test_transform_errors(ring, tmp_path, capsys):
    out = tmp_path / "out"
    assert fit(ring, "--feature", "radius", "--out", out) == 0
    model, target = str(out / "model.npz"), str(tmp_path / "t.csv")
    transform = lambda *a: main(["transform", *map(str, a), "--quiet"])
    refused(capsys, transform(tmp_path / "no.npz", ring, "--out", target), "no model file")
    refused(capsys, transform(ring, ring, "--out", target), "not a model saved by idm_nb")
    np.savez(tmp_path / "f.npz", a=1)
    refused(
        capsys, transform(tmp_path / "f.npz", ring, "--out", target), "not a model saved by idm_nb"
    )
    refused(capsys, transform(model, ring, "--out", tmp_path / "t.txt"), "must be one of .csv")
    write_table(tmp_path / "less.csv", {"x": X[:, 0]})
    refused(capsys, transform(model, tmp_path / "less.csv", "--out", target), "no column 'y'")
    alike = lambda *a: main(["alike", model, *map(str, a), "--quiet"])
    refused(capsys, alike(ring, "--out", tmp_path / "t.txt"), "must be one of .csv")
    refused(capsys, alike(ring, "--out", target, "--count", 401), "--count", "400")
    assert not (tmp_path / "t.csv").exists()


def test_bad_arguments(ring, tmp_path, capsys):
    for arguments in (
        ["fit", str(ring), "--feature", "radius"],
        ["dance"],
        ["demo", "planet", "--out", "x"],
        ["fit", str(ring), "--feature", "radius", "--out", "x", "--holdout", "1"],
        ["fit", str(ring), "--feature", "radius", "--out", "x", "--iterations", "0"],
        ["fit", str(ring), "--feature", "radius", "--out", "x", "--tau", "1.5"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2 and capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_help_reads_like_documentation(capsys):
    for name in ("fit", "transform", "predict", "alike", "demo"):
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args([name, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0 and "Examples:" in text and f"idm-nb {name} " in text
    assert main([]) == 2  # the command alone prints the help
    text = capsys.readouterr().out
    assert "idm-nb fit measurements.csv --feature outcome --out results" in text


def test_help_comes_at_once():
    "In three tenths of a second of processor time, start of Python included."
    before = os.times()
    for _ in range(5):
        run = [sys.executable, "-m", "idm_nb", "fit", "--help"]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    spent = after.children_user + after.children_system
    assert (spent - before.children_user - before.children_system) / 5 < 0.3


def test_nothing_large_is_imported_for_help():
    code = "import sys; from idm_nb.app.command_line import build_parser; build_parser()"
    code += "; print({'numpy', 'sklearn', 'pandas', 'pyarrow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


# identifiers, gaps, words


def named(tmp_path, **more):
    "The ring, its rows named p0, p1, ..."
    names = np.char.add("p", np.arange(500).astype(str))
    columns = {"patient": names, "x": X[:, 0], "y": X[:, 1], "radius": Y[:, 0], **more}
    write_table(tmp_path / "named.csv", columns)
    return tmp_path / "named.csv", names


def test_rows_are_named_in_every_output(tmp_path, capsys):
    data, names = named(tmp_path)
    out, quick = tmp_path / "out", ("--regressor", "ridge")
    assert fit(data, "--feature", "radius", "--index", "patient", "--out", out, *quick) == 0
    for file in ("predictions.csv", "embedding.csv"):
        table = read_table(out / file)
        assert table.names[:2] == ["row", "patient"]
        assert table.columns["patient"].tolist() == names.tolist()
    assert json.loads((out / "summary.json").read_text())["index"] == "patient"
    model = str(out / "model.npz")
    for name in ("transform", "predict", "alike"):  # new rows name theirs without being asked
        target = tmp_path / f"{name}.csv"
        assert main([name, model, str(data), "--out", str(target), "--quiet"]) == 0
        assert read_table(target).names[:2] == ["row", "patient"]
    pairs = read_table(tmp_path / "alike.csv")
    seen = pairs.numbers(["training_row"])[:, 0].astype(int) - 1
    assert pairs.columns["training_patient"].tolist() == names[seen].tolist()
    capsys.readouterr()
    assert main(["predict", model, str(data), "--out", "-", "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "row,patient,predicted_radius,standard_error,branch,foreign"
    assert len(printed) == 501 and printed[500].startswith("500,p499,")


def test_an_index_without_a_name(tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "radius": Y[:, 0]})
    quick = ("--feature", "radius", "--regressor", "ridge")
    for index, ending in (("R", "csv"), ("R", "parquet"), (None, "csv")):
        frame.index = (
            np.arange(500) if index is None else np.char.add("R", np.arange(500).astype(str))
        )
        data, out = tmp_path / f"frame.{ending}", tmp_path / f"{index}{ending}"
        getattr(frame, f"to_{ending}")(data)
        assert fit(data, *quick, "--out", out) == 0
        assert json.loads((out / "summary.json").read_text())["columns"] == ["x", "y"]
        assert read_table(out / "predictions.csv").names[:2] == ["row", "index"]
        if ending == "csv":
            assert (
                "the first column has no name and is taken as the index" in capsys.readouterr().err
            )


def test_rows_without_a_feature_are_placed(ring, tmp_path, capsys):
    radius = np.where(np.arange(500) % 5 == 0, np.nan, Y[:, 0])
    write_table(tmp_path / "gaps.csv", {"x": X[:, 0], "y": X[:, 1], "radius": radius})
    assert fit(tmp_path / "gaps.csv", "--feature", "radius", "--out", tmp_path / "out") == 0
    assert "100 rows have no value of the feature: they are placed" in capsys.readouterr().err
    table = read_table(tmp_path / "out/predictions.csv")
    assert ((table.columns["part"] == "placed") == np.isnan(radius)).all()
    found = table.numbers(["predicted_radius"])[:, 0]
    assert np.abs(found - Y[:, 0])[np.isnan(radius)].max() < 0.2  # the range is 2


def test_rows_with_gaps_are_left_out_or_not_predicted(ring, tmp_path, capsys):
    x = np.where(np.arange(500) == 7, np.nan, X[:, 0])
    data, out = tmp_path / "gaps.csv", tmp_path / "out"
    write_table(data, {"x": x, "y": X[:, 1], "radius": Y[:, 0]})
    quick = ("--feature", "radius", "--regressor", "ridge", "--out", out)
    refused(
        capsys, fit(data, *quick), "column 'x' has a gap at data row 8", "--drop-gaps", status=1
    )
    assert fit(data, *quick, "--drop-gaps") == 0
    rows = read_table(out / "predictions.csv").numbers(["row"])[:, 0]
    assert len(rows) == 499 and 8 not in rows and rows[7] == 9
    for name, many in (("predict", 1), ("alike", 10)):
        arguments = [name, str(out / "model.npz"), str(data), "--out", str(tmp_path / "p.parquet")]
        capsys.readouterr()
        assert main([*arguments, "--rows", "100", "--quiet"]) == 0
        assert f"{many} rows of the result are empty" in capsys.readouterr().err
        found = read_table(tmp_path / "p.parquet")
        gap = np.isnan(found.numbers([found.names[-1]], gaps=True)[:, 0])
        assert set(found.numbers(["row"])[gap, 0]) == {8}


def test_words_and_truth_values_as_numbers(tmp_path, capsys):
    large = Y[:, 0] > 2
    side = np.where(X[:, 0] > 0, "right", "left")
    write_table(tmp_path / "d.csv", {"x": X[:, 0], "y": X[:, 1], "side": side, "large": large})
    out, binary = tmp_path / "out", ("--binary", "side", "--out", tmp_path / "out")
    refused(
        capsys,
        fit(tmp_path / "d.csv", "--feature", "large", "--out", out),
        "type --binary side to use 'left' as 0 and 'right' as 1",
        status=1,
    )
    assert fit(tmp_path / "d.csv", "--feature", "large", *binary) == 0
    assert "'large' is True or False: it is used as 1 and 0" in capsys.readouterr().err
    side[3] = "top"
    write_table(tmp_path / "new.csv", {"x": X[:, 0], "y": X[:, 1], "side": side})
    arguments = [
        str(out / "model.npz"),
        str(tmp_path / "new.csv"),
        "--out",
        str(tmp_path / "p.csv"),
    ]
    code = main(["predict", *arguments, "--quiet"])
    refused(capsys, code, "'top' at data row 4, which is neither 'left' nor 'right'", status=1)
    words = np.where(large, "yes", "no")
    write_table(tmp_path / "w.csv", {"x": X[:, 0], "y": X[:, 1], "large": words})
    quick = ("--feature", "large", "--regressor", "ridge", "--out", out)
    refused(capsys, fit(tmp_path / "w.csv", *quick), "type --binary large", status=1)
    assert fit(tmp_path / "w.csv", *quick, "--binary", "large") == 0
    assert "'no' is used as 0, 'yes' as 1" in capsys.readouterr().err


# files that are fitted in parts

PARTLY = ("--feature", "x", "--regressor", "kernel", "--landmarks", "150", "--quiet")


def torus_file(path, n=6000, **columns):
    "A table of a torus with the feature x, written in groups of 1000 rows; returns its columns."
    X, y, _ = feature_example("torus x", n, random_state=0)
    noise = 0.1 * np.random.default_rng(1).normal(size=n)
    columns = {**dict(zip("abc", X.T)), "x": y[:, 0] + noise, **columns}
    parts = ({k: c[i : i + 1000] for k, c in columns.items()} for i in range(0, n, 1000))
    tables.WRITERS[tables.ending(path)](path, parts, n)
    return columns


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".csv.gz", ".feather"])
def test_a_long_file_is_never_whole_in_memory(kind, tmp_path, monkeypatch):
    "60000 rows of 20 columns take 9.6 MB; the pool of 4000 rows 0.64 MB, a part 0.32 MB."
    rng, rows = np.random.default_rng(0), 60_000
    names, path = [f"x{k}" for k in range(20)], tmp_path / f"long{kind}"
    values = rng.integers(0, 1000, (rows, 20)) / 8
    parts = (dict(zip(names, values[k : k + 3000].T)) for k in range(0, rows, 3000))
    tables.WRITERS[tables.ending(path)](path, parts, rows)
    for name in ("TextFile", "ArrowFile"):
        monkeypatch.setattr(getattr(tables, name), "whole", lambda rows: pytest.fail("whole"))
    monkeypatch.setattr("idm_nb.app.many_rows.PART", 2000)
    options = ["fit", str(path), "--feature", "x0", "--out", "o", "--landmarks", "200"]
    load_inputs(build_parser().parse_args(options))  # imports take memory as well
    tracemalloc.start()
    given = load_inputs(build_parser().parse_args(options))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        given.count == rows and len(given.table) == 4000 and (np.diff(given.table.rows) > 0).all()
    )
    assert np.array_equal(given.table.numbers(names), values[given.table.rows - 1])
    assert peak < values.nbytes / 3


def test_a_file_that_is_fitted_in_parts(tmp_path, capsys):
    outs = []
    for kind in ("parquet", "csv"):
        path, out = tmp_path / f"long.{kind}", tmp_path / kind
        columns = torus_file(path, 60_000)
        assert main(["fit", str(path), *PARTLY, "--out", str(out)]) == 0
        assert {p.name for p in out.iterdir()} == RESULTS
        outs.append((read_table(out / "predictions.csv"), read_table(out / "embedding.csv"), out))
    predictions, embedding, out = outs[0]
    part, rows = predictions.columns["part"], np.arange(1, 60_001)
    assert (part == "train").sum() == 150 and (part == "held-out").sum() == 600
    assert np.array_equal(predictions.columns["row"], rows)
    assert np.allclose(predictions.numbers(["x"])[:, 0], columns["x"], rtol=1e-12)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"] == 60_000 and summary["rows_drawn"] == 3000
    assert summary["held_out"]["rows"] == 600 and summary["parameters"]["landmarks"] == 150
    # the model names its rows by their place in the file, and places the others as it did here
    model = load(out / "model.npz")
    assert np.array_equal(model.rows, rows[part == "train"])
    assert np.allclose(model.truth[:, 0], columns["x"][model.rows - 1])
    some = read_table(tmp_path / "long.csv").part(slice(0, 200))
    told = model.results_of(some, None, True)
    for table in (predictions, embedding):
        for name in {*told} & {*table.names}:
            assert np.allclose(told[name], np.asarray(table.columns[name])[:200].astype(float))
    # the errors that were measured on 600 rows hold for all the others
    placed = part == "placed"
    values, errors, truth = predictions.numbers(["predicted_x", "standard_error", "x"])[placed].T
    r2 = 1 - np.mean((values - truth) ** 2) / truth.var()
    assert abs(r2 - summary["held_out"]["r2"]) < 3 * (1 - r2) * np.sqrt(3 / 600)
    assert np.mean(np.abs(values - truth) < 1.96 * errors) == pytest.approx(
        0.95, abs=3 * np.sqrt(0.95 * 0.05 / 150)
    )
    for first, second in zip(outs[0][:2], outs[1][:2]):
        assert first.names == second.names
        numbers = [name for name in first.names if name not in ("part", "foreign")]
        assert np.allclose(first.numbers(numbers), second.numbers(numbers))
        assert (first.columns["part"] == second.columns["part"]).all()
    for name in ("branches.csv", "relevance.csv", "branch_columns.csv"):
        assert (outs[0][2] / name).read_text() == (outs[1][2] / name).read_text()


def test_in_parts_and_in_memory_are_equal(tmp_path, monkeypatch):
    "All rows are in the pool, so nothing but the reading differs."
    side = np.where(np.arange(600) % 3, "left", "right")
    person = np.char.add("p", (np.arange(600) // 4).astype(str))
    columns = torus_file(tmp_path / "d.csv", 600, side=side, person=person)
    gone = np.where(np.arange(600) % 7 == 0, np.nan, columns["x"])
    write_table(tmp_path / "d.csv", {**columns, "x": gone})
    monkeypatch.chdir(tmp_path)
    more = ("--binary", "side", "--group", "person", "--index", "person", "--jobs", "2")
    assert main(["fit", "d.csv", *PARTLY, *more, "--out", "memory"]) == 0
    monkeypatch.setattr("idm_nb.app.many_rows.is_longer", lambda rows, most: True)
    assert main(["fit", "d.csv", *PARTLY, *more, "--out", "parts"]) == 0
    summaries = []
    for out in ("memory", "parts"):
        summary = json.loads((tmp_path / out / "summary.json").read_text())
        summaries.append({k: v for k, v in summary.items() if k not in ("seconds", "rows_drawn")})
    for name in ("predictions.csv", "embedding.csv"):
        first, second = (read_table(tmp_path / out / name) for out in ("memory", "parts"))
        assert first.names == second.names and len(first) == len(second) == 600
        for column in first.names:
            one, two = first.columns[column], second.columns[column]
            if one.dtype.kind == "f":
                assert np.allclose(one, two, equal_nan=True)
            else:
                assert (one == two).all()
    assert summaries[0] == summaries[1]
    for name in ("branches.csv", "relevance.csv"):
        assert (tmp_path / "memory" / name).read_text() == (tmp_path / "parts" / name).read_text()


def test_a_fit_in_parts_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    import idm_nb.app.command_line as module

    torus_file(tmp_path / "d.parquet")
    monkeypatch.chdir(tmp_path)
    whole, calls, stopped = module.row_columns, [], [4]

    def counted(table, **options):
        calls.append(len(table))
        if len(calls) == stopped[0]:
            raise KeyboardInterrupt
        return whole(table, **options)

    monkeypatch.setattr(module, "row_columns", counted)
    command = ["fit", "d.parquet", *PARTLY, "--out", "there/results"]
    assert main(command) == 130 and "stopped" in capsys.readouterr().err
    assert os.listdir("there") == ["results.parts"]
    assert main([*command, "--seed", "1"]) == 2  # another map
    assert "parts of another run: remove it" in capsys.readouterr().err
    calls.clear()
    stopped[0] = 0
    assert main(command) == 0
    assert len(calls) == 4 and os.listdir("there") == ["results"]  # three of six, one to compare
    assert main([*command[:-1], "again"]) == 0
    for name in ("predictions.csv", "embedding.csv", "relevance.csv"):
        assert (tmp_path / "there/results" / name).read_text() == (
            tmp_path / "again" / name
        ).read_text()


def test_bad_entries_of_a_long_file_are_known_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "idm_nb.app.command_line.run_fit", lambda *given: pytest.fail("work was done")
    )
    columns = torus_file(tmp_path / "d.csv")
    for value, words in ((np.nan, "'a' has a gap at data row 5001"), (1e200, "'a' exceeds 1e+100")):
        a = np.where(np.arange(6000) == 5000, value, columns["a"])
        write_table("d.csv", {**columns, "a": a})
        refused(capsys, main(["fit", "d.csv", *PARTLY, "--out", "o"]), words, status=1)
    side = np.array(["left", "right"])[np.arange(6000) % 2].astype(object)
    side[5500] = "top"
    write_table("d.csv", {**columns, "side": side})
    given = ["fit", "d.csv", *PARTLY, "--out", "o", "--binary", "side"]
    refused(capsys, main(given), "holds 3 different values ('left', 'right', 'top')", status=1)
    write_table("d.csv", {**columns, "x": np.where(np.arange(6000) < 5990, np.nan, columns["x"])})
    told = "leaves 10 rows to fit: at least 16 are needed"
    refused(capsys, main(["fit", "d.csv", *PARTLY, "--out", "o"]), told, status=1)
    assert os.listdir() == ["d.csv"]


def test_gaps_are_left_out_of_a_long_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns = torus_file(tmp_path / "d.csv")
    a = np.where(np.arange(6000) % 1000 == 3, np.nan, columns["a"])
    x = np.where(np.arange(6000) % 10 == 0, np.nan, columns["x"])
    write_table("d.csv", {**columns, "a": a, "x": x})
    assert main(["fit", "d.csv", *PARTLY, "--out", "o", "--drop-gaps"]) == 0
    assert "606 rows have a gap or no value of the feature" in capsys.readouterr().err
    table = read_table("o/predictions.csv")
    assert np.array_equal(table.columns["row"], np.flatnonzero(np.isfinite(a)) + 1)
    part, known = table.columns["part"], np.isfinite(table.numbers(["x"], gaps=True)[:, 0])
    assert (part[~known] == "placed").all() and (part == "train").sum() == 150
    assert np.isfinite(table.numbers(["predicted_x", "standard_error"])).all()
