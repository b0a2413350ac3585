"""Pieces: files of all kinds, runs that are ended and go on, processes, a cluster, damaged files."""

import gzip
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from functools import partial

import joblib
import numpy as np
import pytest
from book import linux, refuses

from idm_nb import IteratedDiffusionMap, in_parts
from idm_nb.datasets import feature_example
from idm_nb.tables import read_table
from idm_nb.tables.cells import Style
from idm_nb.tables.pieces import WRITERS, results_of_pieces
from idm_nb.tables.reading import ending, table_of, tables_of

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def ring():
    X, y, _ = feature_example("annulus radius", 1400, random_state=0)
    return IteratedDiffusionMap(random_state=0).fit(X[:400], y[:400, 0]), X[400:]


def write(path, X):
    "A table in pieces of 333 rows, which are those of some formats."
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    if ending(path) == ".xlsx":
        return frame.to_excel(path, index=False)
    WRITERS[ending(path)](path, (frame[k : k + 333] for k in range(0, len(X), 333)), len(X))


KINDS = ".npy .npz .csv .csv.gz .tsv.bz2 .parquet .feather".split()


@pytest.mark.parametrize("source", [*KINDS, ".xlsx"])
def test_parts_of_a_file_are_placed_as_the_whole(ring, tmp_path, source):
    model, X = ring
    if source == ".xlsx":
        pytest.importorskip("openpyxl")
    given = tmp_path / f"rows{source}"
    write(given, X)
    for target in KINDS:
        found = tmp_path / f"found{target}"
        assert in_parts(model.transform, given, found, rows=300) == len(X)
        table = read_table(found)
        assert np.allclose(table.numbers(table.names), model.transform(X))
        assert set(os.listdir(tmp_path)) == {given.name, found.name}
        found.unlink()


@pytest.mark.parametrize("quote", ["", '"'], ids=["quotes in pairs", "a stray quote"])
def test_no_cut_is_inside_of_quotes(quote, tmp_path):
    words = [('a\n"b",\r\n' * (k % 5) + f"w{k}").strip() for k in range(200)]
    lines = pd.DataFrame(dict(word=words, k=range(200))).to_csv(index=False)
    (tmp_path / "t.csv").write_bytes(lines.replace("w0,", f"3.5{quote} wide,").encode())
    words[0] = f"3.5{quote} wide"
    for rows in (1, 7, 60):
        tables = list(tables_of(tmp_path / "t.csv", rows=rows))
        frame = pd.concat([table.frame for table in tables])
        assert frame.word.tolist() == words and frame.k.tolist() == [*range(200)]
        assert frame.index.tolist() == [*range(1, 201)] and len(tables) == -(-200 // rows)


SLOW = """
import sys, time, idm_nb
def total(X):
    open("calls.txt", "a").write("x")
    time.sleep(0.2)
    return X.sum(axis=1)
idm_nb.in_parts(total, *sys.argv[1:], rows=100)
"""


@linux
@pytest.mark.parametrize(
    "source, target, number",
    [("X.npy", "sums.csv", signal.SIGKILL), ("X.csv.gz", "sums.npy", signal.SIGINT)],
)
def test_a_run_that_was_ended_goes_on(tmp_path, source, target, number):
    X = np.random.default_rng(0).normal(size=(1000, 3)).round(3)
    write(tmp_path / source, X)
    (tmp_path / "run.py").write_text(SLOW)
    command, calls = [sys.executable, "run.py", source, target], tmp_path / "calls.txt"
    options = dict(cwd=tmp_path, stderr=subprocess.DEVNULL)
    first = subprocess.Popen(command, **options)
    while not calls.exists() or len(calls.read_text()) < 4:
        assert first.poll() is None
        time.sleep(0.02)
    os.kill(first.pid, number)
    first.wait()
    done = sorted(path.name for path in (tmp_path / f"{target}.parts").glob("*/0*.parquet"))
    assert not (tmp_path / target).exists() and done[:3] == [
        f"0000000{k}.parquet" for k in range(3)
    ]
    subprocess.run(command, check=True, **options)
    table = read_table(tmp_path / target)
    assert np.allclose(table.numbers(table.names)[:, 0], X.sum(axis=1))
    # every part once, one that was lost, and one to compare
    assert len(calls.read_text()) <= 10 + 2
    assert not [name for name in os.listdir(tmp_path) if name.startswith("sums") and name != target]


def process_of(X):
    return np.full(len(X), float(os.getpid()))


def test_several_processes_give_the_same_rows_in_order(ring, tmp_path):
    model, X = ring
    for name, n_jobs in (("one.csv", 1), ("two.csv", 2)):
        in_parts(model.predict, X, tmp_path / name, rows=60, n_jobs=n_jobs)
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    in_parts(process_of, X, tmp_path / "who.npy", rows=60, n_jobs=2)
    who = np.load(tmp_path / "who.npy").ravel()
    # the first part is a check
    assert (who[:60] == os.getpid()).all() and (who[60:] != os.getpid()).all()
    X = np.where(np.arange(len(X))[:, None] == 900, np.nan, X)
    with pytest.raises(ValueError, match="has a gap at data row 901"):
        in_parts(model.predict, X, tmp_path / "bad.npy", rows=60, n_jobs=2)
    assert not (tmp_path / "bad.npy").exists()


def process_unless_killed(X, file, test):
    "The number of the process, of which the first that is not the `test` ends itself."
    if os.getpid() != test:
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
    return process_of(X)


def test_a_cluster_places_the_pieces_and_may_lose_a_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    options, ended = dict(threads_per_worker=1, dashboard_address=None), tmp_path / "ended"
    call = partial(process_unless_killed, file=ended, test=os.getpid())
    with distributed.LocalCluster(2, **options) as cluster, distributed.Client(cluster):
        with joblib.parallel_config(backend="dask"):
            assert in_parts(call, np.ones((500, 3)), tmp_path / "who.npy", rows=60) == 500
    who = np.load(tmp_path / "who.npy").ravel()
    assert ended.exists() and (who[:60] == os.getpid()).all() and (who[60:] != os.getpid()).all()


def test_parts_of_another_run_are_not_taken(tmp_path):
    X, given, target = np.ones((50, 3)), tmp_path / "X.npy", tmp_path / "sums.npy"
    X[35] = 0  # where the first run stops

    def total(rows, times=1, stop=False):
        if stop and not rows.all():
            raise KeyboardInterrupt
        return times * rows.sum(axis=1)

    def run(rows=10, **options):
        call = partial(total, **options)
        call.__name__ = "total"
        in_parts(call, given, target, rows=rows)

    for more, options in ((1, dict(rows=20)), (1, dict(times=2)), (2, {})):
        np.save(given, X)
        with pytest.raises(KeyboardInterrupt):
            run(stop=True)
        X[10:] *= more  # the same first part
        np.save(given, X)
        run(**options)
        assert np.array_equal(np.load(target).ravel(), options.get("times", 1) * X.sum(axis=1))


def test_parts_of_a_table_in_memory(tmp_path):
    table = table_of(pd.DataFrame(np.ones((90, 30))))
    results = results_of_pieces(lambda part: part.frame, table, Style(), tmp_path / "t", rows=20)
    assert len(pd.concat(results)) == 90


def test_bad_rows_are_named_with_their_place_in_the_file(ring, tmp_path):
    model, X = ring
    X, target = X.copy(), tmp_path / "y.csv"
    X[777, 1] = np.nan
    write(tmp_path / "X.parquet", X)
    with pytest.raises(ValueError, match="'x1' has a gap at data row 778"):
        in_parts(model.predict, tmp_path / "X.parquet", target, rows=100)
    text = ["x,y"] + ["1,2"] * 30 + ["1,word"] + ["1,2"] * 15
    (tmp_path / "bad.csv").write_text("\n".join(text))
    with pytest.raises(ValueError, match="'y' holds 'word' at data row 31"):
        in_parts(model.predict, tmp_path / "bad.csv", tmp_path / "z.csv", rows=20)
    (tmp_path / "bad.csv").write_text("\n".join([*text[:31], "1,2,3", "1,2"]))
    with pytest.raises(ValueError, match="has 2 names but 3 columns"):
        in_parts(model.predict, tmp_path / "bad.csv", tmp_path / "other.csv", rows=20)


BAD = {  # source and target, and what is said
    ("X.npy", "y.txt"): "the ending must be one of",
    ("X.npy", "no-folder/y.npy"): "there is no folder",
    ("empty.npy", "y.npy"): "holds no rows",
    ("broken.npy", "y.npy"): "cannot be read",
    ("broken.parquet", "y.npy"): "cannot be read",
    ("broken.csv.gz", "y.npy"): "cannot be read",
}


@pytest.mark.parametrize("source, target", BAD)
def test_bad_files_are_named(tmp_path, source, target):
    for name, shape in dict(X=(4, 2), empty=(0, 2)).items():
        np.save(tmp_path / f"{name}.npy", np.ones(shape))
    for name in ("broken.npy", "broken.parquet"):
        (tmp_path / name).write_bytes(b"no such thing")
    whole = gzip.compress(b"x\n" + b"1.25\n" * 10_000 + bytes(range(48, 58)) * 9000)
    (tmp_path / "broken.csv.gz").write_bytes(whole[:-50])
    with pytest.raises(ValueError, match=BAD[source, target]):
        in_parts(lambda X: X[:, 0], tmp_path / source, tmp_path / target)


def test_columns_and_numbers_that_are_refused(tmp_path):
    given = np.ones((3, 2)), tmp_path / "y.npy"
    refuses("no column 'z'", lambda: in_parts(np.sum, *given, columns=["z"]))
    refuses("words", lambda: in_parts(lambda X: np.full(len(X), "a"), *given))
    for option in (dict(rows=0), dict(rows=2.5), dict(n_jobs=0), dict(n_jobs=2.5)):
        with pytest.raises((ValueError, TypeError), match=f"{[*option][0]} must be an integer"):
            in_parts(np.sum, *given, **option)


def test_rows_are_not_held(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((200_000, 10)))
    tracemalloc.start()
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    in_parts(lambda X: X[:, 0], rows, tmp_path / "y.npy", rows=5000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # the table takes 16 MB
