"""Model files that are damaged are refused; files and folders that are interrupted while they are written are whole or not there."""

import gc
import io
import json
import os
import signal
import time
import tracemalloc
import zipfile
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from attacks import ESTIMATORS, X, Y
from book import linux, refuses

import idm_nb.core.files
from idm_nb import IteratedDiffusionMap
from idm_nb.command.jobs import FILES, check_folder, write_folder
from idm_nb.core import Storage, load
from idm_nb.core.files import VERSION, save_model, write_whole
from idm_nb.core.work import on_stop

GOLDEN = Path(__file__).parent / "golden"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    "A model, and the bytes of its file."
    path = tmp_path_factory.mktemp("model") / "m.npz"
    model = ESTIMATORS["IteratedDiffusionMap"]().fit(X, Y)
    model.save(path)
    return model, path.read_bytes()


def one_bit(content, rng):
    place = rng.integers(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :]


def cut_off(content, rng):
    return content[: rng.integers(len(content))]


def cut_out(content, rng):
    first, last = np.sort(rng.integers(len(content), size=2))
    return content[:first] + content[last + 1 :]


def overwritten(content, rng):
    place, size = rng.integers(len(content)), rng.integers(1, 300)
    return (content[:place] + rng.bytes(size) + content[place + size :])[: len(content)]


@pytest.mark.parametrize("damage", [one_bit, cut_off, cut_out, overwritten])
def test_damaged_files_are_refused_in_one_line(damage, saved, tmp_path):
    model, whole = saved
    rng, path, refused = np.random.default_rng(0), tmp_path / "m.npz", 0
    for _ in range(110):
        content = damage(whole, rng)
        path.write_bytes(content)
        try:
            found = load(path)
        except ValueError as error:
            assert type(error) is ValueError and "\n" not in str(error)
            assert str(error).startswith(f"{path} is not a model saved by idm_nb, or it is damaged")
            refused += 1
        else:  # nothing depends on the part that was changed, such as a date of the archive
            assert np.array_equal(found.transform(X + 0.1), model.transform(X + 0.1))
    assert refused >= (55 if damage is one_bit else 100), refused


def edited(whole, change):
    "The model file with its header changed, but well formed."
    parts = dict(np.load(io.BytesIO(whole)))
    header = json.loads(str(parts["header"]))
    parts["header"] = np.array(json.dumps(change(header)))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **parts)
    return buffer.getvalue()


def somewhere(tree, value, rng):
    "The tree with `value` at some place."
    if rng.random() < 0.2 or not isinstance(tree, (dict, list)) or not tree:
        return value
    key = rng.choice(list(tree)) if isinstance(tree, dict) else int(rng.integers(len(tree)))
    tree[key] = somewhere(tree[key], value, rng)
    return tree


STRANGE = [None, 7, -1, "x", [], {}, {"array": 999}, {"array": "a"}, {"array": 0}, {"list": 3}]
STRANGE += [{"dict": [[1]]}, {"csr": [1, 2]}, {"strings": 4}, {"tuple": None}]
STRANGE += [
    {"object": "nothing", "state": {}},
    {"object": 3, "state": {}},
    {"object": "ClosedFlow"},
]
KINDS = ("os.system", "no.such.module.X", "Metric")
STRANGE += [{"object": kind, "state": {"dict": []}} for kind in KINDS]


def test_headers_that_make_no_sense_run_nothing(saved, tmp_path, monkeypatch):
    path, rng = tmp_path / "m.npz", np.random.default_rng(0)
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("code was run"))
    for k in range(100):
        value = STRANGE[k % len(STRANGE)]
        path.write_bytes(edited(saved[1], lambda header: somewhere(header, value, rng)))
        try:
            found = load(path)
        except ValueError as error:
            assert type(error) is ValueError and "\n" not in str(error)
        else:
            assert isinstance(found, Storage) and type(found).__module__.startswith("idm_nb.")


NO_MODEL = ["null", "[]", "3", '"x"', "{", '{"format": "idm_nb model"}', "[" * 100_000]
OF_VERSION = '{"format": "idm_nb model", "version": %s, "model": %s}'
NO_MODEL += [OF_VERSION % pair for pair in (('"x"', "null"), (1, "null"), (0, "null"))]
NO_MODEL += ['{"format": "idm_nb model", "version": 1}']
NO_MODEL += [OF_VERSION % (1, '{"list": [' * 3000 + "]}" * 3000)]


@pytest.mark.parametrize("header", NO_MODEL, ids=range(len(NO_MODEL)))
def test_headers_that_are_no_model(header, tmp_path):
    np.savez(tmp_path / "m.npz", header=np.array(header))
    refuses("is not a model saved by idm_nb", lambda: load(tmp_path / "m.npz"))


def test_files_that_are_missing_or_newer_or_of_others(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz")
    np.savez(tmp_path / "m.npz", a=np.ones(3))
    refuses("is not a model saved by idm_nb, or it is damaged", lambda: load(tmp_path / "m.npz"))
    np.savez(tmp_path / "m.npz", header=np.array(OF_VERSION % (VERSION + 1, "null")))
    with pytest.raises(ValueError, match="saved by a newer version of idm_nb; update the package"):
        load(tmp_path / "m.npz")


def lying(path):
    "An archive with an array that claims more numbers than it holds."
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (10**11,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", head.getvalue() + bytes(1000))


def swollen(path):
    "An archive of a few kilobytes that expands to gigabytes."
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a0.npy", "w") as part,
    ):
        for _ in range(300):
            part.write(bytes(2**20))


@pytest.mark.parametrize("trap", [lying, swollen])
def test_traps_cost_no_memory(trap, tmp_path):
    trap(tmp_path / "m.npz")
    tracemalloc.start()
    refuses("is not a model saved by idm_nb", lambda: load(tmp_path / "m.npz"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


STAGES = ["write", "chmod", "replace"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(28, "No space left on device"), MemoryError]
)
def test_a_file_that_is_interrupted_leaves_the_old_one(stage, error, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*arguments, **options):
        raise error

    def write(name):
        with open(name, "w") as file:
            file.write("ne")
            if stage == "write":
                raise error

    if stage != "write":
        monkeypatch.setattr(idm_nb.core.files.os, stage, fail)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        write_whole(path, write)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@linux
def test_only_regular_files_are_replaced(tmp_path):
    folder, pipe, link = tmp_path / "folder", tmp_path / "pipe", tmp_path / "link"
    folder.mkdir()
    os.mkfifo(pipe)
    (tmp_path / "real").write_text("old")
    link.symlink_to(tmp_path / "real")
    write = lambda name: open(name, "w").write("new")
    for path in (folder, pipe, "/dev/full", "/dev/null"):
        with pytest.raises(
            ValueError, match="is not a regular file and is not replaced: give another name"
        ):
            write_whole(path, write)
    write_whole(link, write)
    assert link.is_symlink() and (tmp_path / "real").read_text() == "new" and pipe.is_fifo()
    refuses("is not a regular file", lambda: check_folder(tmp_path, ["pipe"]))


def whole_or_none(folder, names):
    "Does the folder hold one generation of all files, and nothing else?"
    if not folder.exists():
        return True
    found = {p.name: p.read_text() for p in folder.iterdir()}
    return set(found) == set(names) and len(set(found.values())) == 1


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("old", [False, True], ids=["new folder", "old folder"])
def test_signals_at_every_stage_of_writing(number, old, tmp_path):
    # a process that does nothing but write is stopped at sixty different moments
    out, ends = tmp_path / "out", []

    def stop(number, frame):
        raise KeyboardInterrupt

    writer = lambda text: lambda path: path.write_text(text)

    def write_for_ever(ready):
        gc.disable()  # Python ignores what is raised while it collects
        signal.alarm(100)  # if no signal stops it
        with on_stop(stop):
            os.write(ready, b"x")
            for turn in count():
                write_folder(out, {name: writer(f"{delay} {turn} " * 20) for name in FILES})

    for delay in np.linspace(0, 0.01, 60):
        if not old and out.exists():
            for path in out.iterdir():
                path.unlink()
            out.rmdir()
        ready, child = os.pipe(), os.fork()
        if not child:
            code = 1
            try:
                write_for_ever(ready[1])
            except KeyboardInterrupt:
                code = 3
            finally:
                os._exit(code)
        os.read(ready[0], 1)
        time.sleep(delay)
        os.kill(child, number)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os.close(ready[0]), os.close(ready[1])
        assert whole_or_none(out, FILES), (delay, sorted(p.name for p in out.iterdir()))
        assert [p.name for p in tmp_path.iterdir()] in (["out"], [])
    assert ends == 60 * [3]


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    def full(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(ValueError, match="cannot be written: No space left on device"):
        write_folder(
            tmp_path / "a" / "b" / "out", {"x": lambda path: path.write_text("x"), "y": full}
        )
    check_folder(tmp_path / "a" / "b" / "out")
    assert list(tmp_path.iterdir()) == []


def test_results_never_cross_from_disk_to_disk(tmp_path, monkeypatch):
    # as on a mount point: beside the folder is another disk
    out, move = tmp_path / "out", Path.replace
    out.mkdir()
    (out / "notes.txt").write_text("mine")

    def replace(source, target):
        if out not in Path(source).parents:
            raise OSError(18, "Invalid cross-device link")
        return move(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_folder(out, {"x": lambda path: path.write_text("x")})
    assert sorted(p.name for p in out.iterdir()) == ["notes.txt", "x"]


def write_golden():
    "A file of this version and its answers: `python tests/test_files.py` writes them, once a version."
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 250)
    X = np.c_[np.cos(angle), np.sin(angle)].round(3)
    model = IteratedDiffusionMap(regressor="kernel", random_state=0).fit(X[:200], X[:200, 0])
    placed = model.place(X[200:])
    model.save(GOLDEN / f"map_v{VERSION}.npz")
    answers = dict(values=placed.values, places=placed.embedding, branch=placed.branch)
    np.savez_compressed(GOLDEN / f"map_v{VERSION}_expected.npz", X=X[200:], **answers)


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_file_of_every_version_can_be_read_for_ever(version):
    model = IteratedDiffusionMap.load(GOLDEN / f"map_v{version}.npz")
    expected = np.load(GOLDEN / f"map_v{version}_expected.npz")
    placed = model.place(expected["X"])
    assert np.allclose(placed.values, expected["values"], atol=1e-8)
    assert np.allclose(placed.embedding, expected["places"], atol=1e-8)
    assert np.array_equal(placed.branch, expected["branch"]) and placed.branch.max() == 1


def test_equal_arrays_are_stored_once_and_only_those_that_shrink_are_compressed(tmp_path):
    noise = np.random.default_rng(0).normal(size=(200, 30))
    parts = {"a": noise, "b": noise.copy(), "turned": np.asfortranarray(noise), "c": np.zeros(5000)}
    save_model(parts, tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        entries = {entry.filename: entry.compress_type for entry in archive.infolist()}
    stored, deflated = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    assert list(entries) == ["header.npy", "a0.npy", "a1.npy", "a2.npy"]
    assert [*entries.values()][1:] == [stored, stored, deflated]
    with np.load(tmp_path / "m.npz") as file:
        assert np.array_equal(file["a0"], noise) and np.array_equal(file["a1"], noise)
        assert file["a0"].flags.c_contiguous and file["a1"].flags.f_contiguous


if __name__ == "__main__":
    write_golden()
