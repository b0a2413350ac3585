"""Tables of any length: parts of files, runs that are ended and go on, lazy arrays, landmarks, threads."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from book import linux
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

from idm_nb import DiffusionMap, FeatureRegressor, IteratedDiffusionMap, in_parts
from idm_nb.app import read_table
from idm_nb.app.command_line import main
from idm_nb.app.tables import WRITERS, ending, rows_of, write_table
from idm_nb.core.work import one_thread
from idm_nb.datasets import feature_example


@pytest.fixture(scope="module")
def ring():
    X, y, _ = feature_example("annulus radius", 1400, random_state=0)
    return IteratedDiffusionMap(random_state=0).fit(X[:400], y[:400, 0]), X[400:]


def write(path, X):
    if path.suffix == ".npy":
        return np.save(path, X)
    columns = {f"x{k}": column for k, column in enumerate(X.T)}
    parts = ({n: c[k : k + 333] for n, c in columns.items()} for k in range(0, len(X), 333))
    WRITERS[ending(path)](path, parts, len(X))


@pytest.mark.parametrize("source", [".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".feather"])
@pytest.mark.parametrize("target", [".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".feather"])
def test_parts_of_a_file_are_placed_as_the_whole(ring, tmp_path, source, target):
    model, X = ring
    given, found = tmp_path / f"rows{source}", tmp_path / f"found{target}"
    write(given, X)
    assert in_parts(model.transform, given, found, rows=300) == len(X)
    table = read_table(found)
    assert np.allclose(table.numbers(table.names), model.transform(X))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([given.name, found.name])


def test_a_memory_map_is_predicted(ring, tmp_path):
    model, X = ring
    np.save(tmp_path / "X.npy", X)
    in_parts(
        model.predict, np.load(tmp_path / "X.npy", mmap_mode="r"), tmp_path / "y.npy", rows=128
    )
    assert np.allclose(np.load(tmp_path / "y.npy")[:, 0], model.predict(X))


SLOW = """
import sys, time
import numpy as np
from idm_nb import in_parts

def total(X):
    open("calls.txt", "a").write("x")
    time.sleep(0.2)
    return X.sum(axis=1)

in_parts(total, "X.npy", sys.argv[1], rows=100)
"""


@linux
@pytest.mark.parametrize("target", ["sums.npy", "sums.csv"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_goes_on(tmp_path, target, number):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "run.py").write_text(SLOW)
    command, calls = [sys.executable, "run.py", target], tmp_path / "calls.txt"
    options = dict(cwd=tmp_path, stderr=subprocess.DEVNULL)
    first = subprocess.Popen(command, **options)
    while not calls.exists() or len(calls.read_text()) < 4:
        assert first.poll() is None
        time.sleep(0.02)
    os.kill(first.pid, number)
    first.wait()
    assert not (tmp_path / target).exists()
    assert len(list((tmp_path / f"{target}.parts").glob("0*.npz"))) >= 3
    subprocess.run(command, check=True, **options)
    table = read_table(tmp_path / target)
    assert np.allclose(table.numbers(table.names)[:, 0], X.sum(axis=1))
    assert len(calls.read_text()) <= 12  # ten parts, one that was lost, one to compare
    assert not (tmp_path / f"{target}.parts").exists()


def process_of(X):
    return np.full(len(X), float(os.getpid()))


def test_several_processes_give_the_same_rows_in_order(ring, tmp_path):
    model, X = ring
    np.save(tmp_path / "X.npy", X)
    for target in ("one.csv", "two.csv"):
        options = dict(rows=60, n_jobs=1 + (target == "two.csv"))
        assert in_parts(model.predict, tmp_path / "X.npy", tmp_path / target, **options) == len(X)
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    in_parts(process_of, tmp_path / "X.npy", tmp_path / "who.npy", rows=60, n_jobs=2)
    who = np.load(tmp_path / "who.npy").ravel()
    # the first part is a check
    assert (who[:60] == os.getpid()).all() and (who[60:] != os.getpid()).all()
    bad = X.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match=f"has a gap at data row {len(X)}"):
        in_parts(model.predict, bad, tmp_path / "bad.npy", rows=60, n_jobs=2)
    assert not (tmp_path / "bad.npy").exists()
    for n_jobs, kind in ((0, ValueError), (1.5, TypeError)):
        with pytest.raises(kind, match="n_jobs must be an integer"):
            in_parts(np.sum, X, tmp_path / "y.npy", n_jobs=n_jobs)


def leave_parts(tmp_path, X, target):
    np.save(tmp_path / "X.npy", X)

    calls = []

    def total(rows):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return rows.sum(axis=1)

    with pytest.raises(KeyboardInterrupt):
        in_parts(total, tmp_path / "X.npy", target, rows=10)


def test_parts_of_another_run_are_not_taken(tmp_path):
    X, target = np.random.default_rng(0).normal(size=(50, 3)), tmp_path / "sums.npy"
    leave_parts(tmp_path, X, target)

    def total(rows):
        return 2 * rows.sum(axis=1)

    for rows in (10, 20):  # another function, other parts
        with pytest.raises(ValueError, match="parts of another run: remove it"):
            in_parts(total, tmp_path / "X.npy", target, rows=rows)
    np.save(tmp_path / "X.npy", X + 1)
    with pytest.raises(ValueError, match="parts of another run: remove it"):
        in_parts(lambda rows: rows.sum(axis=1), tmp_path / "X.npy", target, rows=10)


def test_bad_rows_are_named_with_their_place_in_the_file(ring, tmp_path):
    model, X = ring
    X = X.copy()
    X[777, 1] = np.nan
    write(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="'c1' has a gap at data row 778"):
        in_parts(model.predict, tmp_path / "X.npy", tmp_path / "y.csv", rows=100)
    text = ["x,y"] + ["1,2"] * 30 + ["1,word"] + ["1,2"] * 15
    (tmp_path / "bad.csv").write_text("\n".join(text))
    with pytest.raises(ValueError, match="'y' holds 'word' at data row 31"):
        in_parts(model.predict, tmp_path / "bad.csv", tmp_path / "y2.csv", rows=20)
    (tmp_path / "bad.csv").write_text("\n".join([*text, "1,2,3"]))
    with pytest.raises(ValueError, match="has 2 names but 3 columns in line 48"):
        in_parts(model.predict, tmp_path / "bad.csv", tmp_path / "y3.csv", rows=20)


@pytest.mark.parametrize(
    "source, target, message",
    [
        ("none.npy", "y.npy", "there is no file"),
        ("X.xlsx", "y.npy", "save the sheet as CSV"),
        ("X.npy", "y.txt", "the ending must be one of"),
        ("X.npy", "no-folder/y.npy", "there is no folder"),
        ("cube.npy", "y.npy", "has 3 dimensions"),
        ("empty.npy", "y.npy", "holds no rows"),
        ("broken.npy", "y.npy", "cannot be read"),
        ("broken.parquet", "y.npy", "cannot be read"),
    ],
)
def test_bad_files_are_named(tmp_path, source, target, message):
    if source.endswith("parquet"):
        pytest.importorskip("pyarrow")
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    np.save(tmp_path / "cube.npy", np.ones((4, 2, 2)))
    np.save(tmp_path / "empty.npy", np.ones((0, 2)))
    for name in ("broken.npy", "broken.parquet", "X.xlsx"):
        (tmp_path / name).write_bytes(b"no such thing")
    with pytest.raises(ValueError, match=message):
        in_parts(lambda X: X[:, 0], tmp_path / source, tmp_path / target)


def test_an_unknown_column_and_bad_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no column 'z'"):
        in_parts(np.sum, np.ones((3, 2)), tmp_path / "y.npy", columns=["z"])
    for rows, kind in ((0, ValueError), (2.5, TypeError)):
        with pytest.raises(kind, match="rows must be an integer"):
            in_parts(np.sum, np.ones((3, 2)), tmp_path / "y.npy", rows=rows)
    with pytest.raises(ValueError, match="words"):
        in_parts(lambda X: np.full(len(X), "a"), np.ones((3, 2)), tmp_path / "y.npy")


def test_columns_of_words_stay_text_in_parts(tmp_path):
    (tmp_path / "t.csv").write_text("person,x\n" + "007,1\n" * 30)
    (part,) = rows_of(tmp_path / "t.csv", words=("person",)).parts(100)
    assert part.columns["person"].tolist() == ["007"] * 30 and part.columns["x"].dtype == float


def test_the_command_predicts_in_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, _ = feature_example("annulus radius", 500, random_state=0)
    write_table("ring.csv", {"x": X[:, 0], "y": X[:, 1], "radius": y[:, 0]})
    assert main("fit ring.csv --feature radius --out results --quiet".split()) == 0
    write_table("new.csv", {"y": X[:, 1], "name": ["a"] * 500, "x": X[:, 0]})
    command = "predict results/model.npz new.csv --out p.csv --rows 70 --jobs 2 --coordinates"
    assert main(command.split()) == 0
    assert main("transform results/model.npz new.csv --out t.csv".split()) == 0
    p, t = read_table("p.csv"), read_table("t.csv")
    assert set(p.names) == set(t.names)
    assert np.allclose(p.numbers(t.names), t.numbers(t.names))
    for arguments in (
        "predict results/model.npz none.csv --out q.csv",
        "predict results/model.npz new.csv --index name --out q.npy",
        "predict results/model.npz new.csv --index nome --out q.csv",
        "alike results/model.npz new.csv --out q.csv --count 999",
    ):
        capsys.readouterr()
        assert main(arguments.split()) == 2
        assert capsys.readouterr().err.startswith("idm-nb: error: ")
    for option in ("--jobs", "--rows"):
        with pytest.raises(SystemExit):
            main(f"predict results/model.npz ring.csv --out q.csv {option} 0".split())
    assert not os.path.exists("q.csv")


# lazy arrays


def test_lazy_arrays_and_frames(ring):
    da = pytest.importorskip("dask.array")
    model, X = ring
    lazy = da.from_array(X, chunks=(300, 1))
    moved, values = model.transform(lazy), model.predict(lazy)
    assert moved.shape == model.transform(X).shape and values.shape == (len(X),)
    assert np.allclose(moved.compute(scheduler="threads"), model.transform(X))
    assert np.allclose(values.compute(scheduler="threads"), model.predict(X))
    plain = DiffusionMap(3, random_state=0).fit(X[:300])
    assert np.allclose(plain.transform(lazy).compute(scheduler="threads"), plain.transform(X))
    with pytest.raises(ValueError, match="has 5 columns"):
        model.transform(da.ones((10, 5)))
    with pytest.raises(ValueError, match="two dimensions"):
        model.predict(da.ones(10))
    for pair in (model.predict(lazy, return_std=True), model.predict(lazy, True)):
        for found, expected in zip(pair, model.predict(X, return_std=True)):
            assert found.shape == expected.shape and np.allclose(
                found.compute(scheduler="threads"), expected
            )
    with pytest.raises(TypeError, match="unexpected keyword"):
        model.predict(lazy, errors=True)
    bad = X.copy()
    bad[500, 0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(da.from_array(bad, chunks=(300, 2))).compute(scheduler="threads")


def test_lazy_frames():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = feature_example("annulus radius", 500, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(500) * 2)
    model = FeatureRegressor(["kernel"]).fit(frame, y[:, 0])
    found = model.predict(dd.from_pandas(frame, npartitions=3))
    assert found.name == "predict"
    computed = found.compute(scheduler="threads")
    assert np.allclose(computed, model.predict(frame)) and (computed.index == frame.index).all()
    several = FeatureRegressor(["kernel"]).fit(frame, np.c_[y, 2 * y])
    for one in (model, several):
        pair = one.predict(dd.from_pandas(frame, npartitions=3), return_std=True)
        for found, expected in zip(pair, one.predict(frame, return_std=True)):
            assert np.allclose(found.compute(scheduler="threads"), expected)
    embedded = IteratedDiffusionMap(random_state=0).fit(frame, y[:, 0])
    moved = embedded.transform(dd.from_pandas(frame, npartitions=3))
    assert np.allclose(moved.compute(scheduler="threads"), embedded.transform(frame))


def test_a_worker_that_ends_in_mid_run_changes_nothing(ring):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    model, X = ring
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        slow = da.from_array(X, chunks=(50, 2)).map_blocks(wait, dtype=float)
        future = client.compute(model.transform(slow))
        workers = client.run(os.getpid)
        while not sum(len(keys) for keys in client.has_what().values()):
            time.sleep(0.05)
        os.kill(next(iter(workers.values())), signal.SIGKILL)
        found = future.result(timeout=120)
        assert set(client.run(os.getpid).values()) != set(workers.values())
    assert np.allclose(found, model.transform(X))


def wait(part):
    time.sleep(0.1)
    return part


# landmarks


def test_landmarks_stand_for_all():
    X, y, _ = feature_example("annulus radius", 3000, random_state=0)
    model = IteratedDiffusionMap(landmarks=500, random_state=0)
    moved = model.fit_transform(X, y)
    assert (
        len(moved) == 3000
        and len(model.embedding_) == len(model.landmarks_) == len(model.residuals_) == 500
    )
    assert np.allclose(moved[model.landmarks_], model.embedding_)
    assert model.score(X, y) > 0.999
    same = IteratedDiffusionMap(landmarks=model.landmarks_, random_state=0).fit(X, y)
    assert same.landmarks_.tolist() == model.landmarks_.tolist()
    for landmarks, kind in (
        (5000, ValueError),
        (2, ValueError),
        (0.5, TypeError),
        ([0, 9999], ValueError),
        ([0.5, 1.5], ValueError),
    ):
        with pytest.raises(kind, match="landmarks must be"):
            IteratedDiffusionMap(landmarks=landmarks).fit(X, y)


# threads


def blas_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class Counting(LinearRegression):
    "A regressor that notes how many threads linear algebra has while it is fitted."

    seen = []

    def fit(self, X, y):
        Counting.seen.append(blas_threads())
        return super().fit(X, y)


def test_a_fit_takes_one_thread_and_leaves_the_limit_as_it_was():
    X = np.random.default_rng(0).normal(size=(60, 5))
    Counting.seen.clear()
    with threadpool_limits(2):
        IteratedDiffusionMap(regressor=Counting(), random_state=0).fit(X, X[:, 0])
        assert blas_threads() == {2}
    assert Counting.seen and all(threads == {1} for threads in Counting.seen)


def test_one_thread_ends_with_an_error_too():
    with threadpool_limits(2):
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert blas_threads() == {2}


def test_rows_are_not_held(tmp_path):
    import tracemalloc

    np.save(tmp_path / "X.npy", np.zeros((200_000, 10)))
    tracemalloc.start()
    in_parts(
        lambda X: X[:, 0], np.load(tmp_path / "X.npy", mmap_mode="r"), tmp_path / "y.npy", rows=5000
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # the table takes 16 MB
