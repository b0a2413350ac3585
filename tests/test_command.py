"""The command `idm-nb`, from files to folders, and its errors."""

import json

import numpy as np
import pytest

import idm_nb
from idm_nb.app import read_table
from idm_nb.app.command_line import build_parser, main
from idm_nb.app.tables import write_csv
from idm_nb.core import load
from idm_nb.datasets import feature_example

X, Y, _ = feature_example("annulus radius", 500, random_state=0)
RESULTS = {
    "embedding.csv",
    "branches.csv",
    "predictions.csv",
    "relevance.csv",
    "model.npz",
    "summary.json",
    "report.html",
}


@pytest.fixture()
def ring(tmp_path):
    write_csv(tmp_path / "ring.csv", dict(zip(["x", "y", "radius"], [*X.T, Y[:, 0]])))
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
        "predicted radius",
        "standard error of radius",
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
    assert page.count("data:image/png") == 5 and "://" not in page
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

    arrays = tmp_path / "moved.npz"
    assert (
        main(["transform", str(out / "model.npz"), str(ring), "--out", str(arrays), "--quiet"]) == 0
    )
    with np.load(arrays) as found:
        assert np.array_equal(found["prediction"], again.numbers(["predicted radius"]))
        assert found["error"].shape == found["prediction"].shape and found["foreign"].dtype == bool


def test_alike(ring, tmp_path):
    out, found = tmp_path / "out", tmp_path / "alike.csv"
    assert main(["fit", str(ring), "--feature", "radius", "--out", str(out), "--quiet"]) == 0
    alike = lambda *a: main(["alike", str(out / "model.npz"), *map(str, a), "--quiet"])
    assert alike(ring, "--out", found, "--count", 5) == 0
    table, part = read_table(found), read_table(out / "predictions.csv").columns["part"]
    row, rank, seen = table.numbers(["row", "rank", "training row"]).astype(int).T
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
    write_csv(tmp_path / "t.csv", {**dict(zip("abc", X.T)), "x": y[:, 0], "side": side})
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
    low, high = branches.numbers(["lowest x", "highest x"]).T
    assert branches.columns["joins"][0].startswith("1, 2 at -1") and np.all(low < high)
    assert set(branches.columns["mostly side"][1:3]) == {"left", "right"}
    middle = np.abs(y[:, 0]) < 0.8
    found = read_table(out / "predictions.csv").numbers(["branch"])[:, 0].astype(int)
    assert np.mean(branches.columns["mostly side"][found[middle]] == side[middle]) > 0.95
    page = (out / "report.html").read_text()
    assert page.count("data:image/png") == 7 and "mostly side" in page


def test_foreign_rows(ring, tmp_path):
    out, moved = tmp_path / "out", tmp_path / "moved.csv"
    assert fit(ring, "--feature", "radius", "--out", out) == 0
    write_csv(tmp_path / "far.csv", {"x": [*X[:3, 0], 40.0], "y": [*X[:3, 1], 40.0]})
    arguments = [str(out / "model.npz"), str(tmp_path / "far.csv"), "--out", str(moved), "--quiet"]
    assert main(["transform", *arguments]) == 0
    assert read_table(moved).columns["foreign"].tolist() == ["no", "no", "no", "yes"]


def test_a_feature_that_rows_know_nothing_of(tmp_path, capsys):
    rng = np.random.default_rng(0)
    write_csv(tmp_path / "d.csv", {"x": rng.normal(size=150), "y": rng.normal(size=150)})
    assert fit(tmp_path / "d.csv", "--feature", "y", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "no more than chance" in printed.out and "idm-nb: warning: the feature" in printed.err
    assert not json.loads((tmp_path / "out/summary.json").read_text())["verdict"]["beats_chance"]


@pytest.mark.parametrize("ending", ["csv", "npy", "npz", "parquet"])
def test_formats(ending, tmp_path):
    data = tmp_path / f"data.{ending}"
    feature = ["--feature", "y"]
    if ending == "csv":
        write_csv(data, {"a": X[:, 0], "b": X[:, 1], "y": Y[:, 0]})
    elif ending == "npy":
        np.save(data, np.c_[X, Y])
        feature = ["--feature", "c2"]
    elif ending == "npz":
        np.savez(data, X=X, y=Y)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": Y[:, 0]}), data)
    assert fit(data, *feature, "--out", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out/summary.json").read_text())["held_out"]["r2"] > 0.98


def test_feature_from_a_second_file_and_angle(tmp_path):
    np.save(tmp_path / "X.npy", X)
    degrees = np.degrees(np.arctan2(X[:, 1], X[:, 0]))
    write_csv(tmp_path / "angle.csv", {"angle": degrees})
    out = tmp_path / "out"
    arguments = ("--feature-file", tmp_path / "angle.csv", "--angle", "degrees", "--scale", "none")
    assert fit(tmp_path / "X.npy", *arguments, "--out", out) == 0
    names = ["angle", "predicted angle", "standard error of angle"]
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
    write_csv(data, {**dict(zip("abc", X.T)), "y": y})
    assert fit(data, "--feature", "y", "--out", out) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["weights"]["boosting"] > 0.5 and summary["held_out"]["r2"] > 0.9
    relevance = read_table(out / "relevance.csv")
    assert relevance.columns["local above chance"].tolist() == ["yes", "yes", "no"]
    assert (
        main(["transform", str(out / "model.npz"), str(data), "--out", str(moved), "--quiet"]) == 0
    )
    written = read_table(out / "predictions.csv").numbers(["predicted y", "standard error of y"])
    assert np.allclose(read_table(moved).numbers(["predicted y", "standard error of y"]), written)


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
    write_csv(tmp_path / "d.csv", columns)
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


def refused(capsys, code, *words):
    message = capsys.readouterr().err
    assert code == 2 and "Traceback" not in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    "content, words",
    [
        ("", ("is empty",)),
        ("x,y,radius\n", ("no rows",)),
        ("x,y,radius\n1,2\n", ("has 3 names but 2 columns",)),
        ("x,y,radius\n1,2,3\n4,five,6\n", ("column 'y' holds 'five' at data row 2", "--ignore")),
        ("x,y,radius\n1,2,3\n4,,6\n", ("column 'y' is empty at data row 2",)),
        ("x,y,radius\n1,2,3\n4,nan,6\n", ("column 'y' is not finite at data row 2",)),
        ("x,y,radius\n1,2,3\n4,5,inf\n", ("column 'radius' is not finite at data row 2",)),
        ("x,y,r\n1,2,3\n4,5,6\n", ("no column 'radius'", "x, y, r")),
        ("radius\n1\n2\n", ("no data columns",)),
        ("x,radius\n" + "1,2\n3,4\n" * 5, ("leaves 8 rows to fit", "at least 16")),
    ],
)
def test_bad_tables(content, words, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text(content)
    refused(
        capsys, fit(tmp_path / "bad.csv", "--feature", "radius", "--out", tmp_path / "o"), *words
    )
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
    refused(
        capsys, fit(tmp_path / "d.npz", "--feature", "r", "--out", tmp_path / "o"), "cannot be read"
    )
    refused(capsys, fit(ring, "--out", tmp_path / "o"), "--feature COLUMN")
    write_csv(tmp_path / "short.csv", {"f": Y[:10, 0]})
    code = fit(ring, "--feature-file", tmp_path / "short.csv", "--out", tmp_path / "o")
    refused(capsys, code, "has 10 rows but", "has 500")


def test_folders_that_cannot_be_written(ring, tmp_path, capsys):
    refused(capsys, fit(ring, "--feature", "radius", "--out", ring), "is a file; give a folder")
    refused(capsys, fit(ring, "--feature", "radius", "--out", ring / "deeper"), "cannot be written")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ring.csv"]


def test_nothing_half_written(ring, tmp_path, capsys, monkeypatch):
    import idm_nb.app.results as module

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_model", full)
    refused(capsys, fit(ring, "--feature", "radius", "--out", tmp_path / "o"), "No space left")
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
    refused(capsys, transform(model, ring, "--out", tmp_path / "t.txt"), "must be .csv or .npz")
    write_csv(tmp_path / "less.csv", {"x": X[:, 0]})
    refused(capsys, transform(model, tmp_path / "less.csv", "--out", target), "no column 'y'")
    alike = lambda *a: main(["alike", model, *map(str, a), "--quiet"])
    refused(capsys, alike(ring, "--out", tmp_path / "t.txt"), "must be .csv")
    refused(capsys, alike(ring, "--out", target, "--count", 401), "--count", "400")
    assert not (tmp_path / "t.csv").exists()


def test_bad_arguments(ring, tmp_path, capsys):
    for arguments in (
        ["fit", str(ring), "--feature", "radius"],
        ["dance"],
        ["demo", "planet", "--out", "x"],
        ["fit", str(ring), "--feature", "radius", "--out", "x", "--holdout", "1"],
        ["fit", str(ring), "--feature", "radius", "--out", "x", "--iterations", "0"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2 and capsys.readouterr().err
    refused(
        capsys,
        fit(ring, "--feature", "radius", "--tau", "1.5", "--out", tmp_path / "o"),
        "tau must be",
    )
    assert not (tmp_path / "o").exists()


def test_help_reads_like_documentation(capsys):
    for arguments in (
        ["--help"],
        ["fit", "--help"],
        ["transform", "--help"],
        ["alike", "--help"],
        ["demo", "--help"],
    ):
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args(arguments)
        assert stop.value.code == 0
    text = capsys.readouterr().out
    assert (
        "idm-nb fit measurements.csv --feature outcome --out results" in text
        and "report.html" in text
    )
