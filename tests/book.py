"""The notebooks, as the tests of the repository read them, and where tests can run."""

import json
import sys
from pathlib import Path

import pytest
from renumber import NUMBER

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="uses devices, pipes or signals of Linux"
)

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
NOTEBOOKS = sorted(NBS.glob("*/*.ipynb"))
MODULES = sorted(path for path in (ROOT / "idm_nb").glob("*/*.py") if not path.stem.startswith("_"))


def name_of(path):
    "Part and chapter of a notebook, as 05_flow/01_flow."
    return path.relative_to(NBS).with_suffix("").as_posix()


def module_name(path):
    "Dotted name of a module of the package from its path."
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def cells_of(path, kind=None):
    "Cells of a notebook, all or those of one kind."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if kind in (None, cell["cell_type"])]


def source(cell):
    return "".join(cell["source"])


def sources(path, kind=None):
    return [source(cell) for cell in cells_of(path, kind)]


def notebook(name):
    "Path of the notebook with a name, its number left out."
    (path,) = (path for path in NOTEBOOKS if NUMBER.sub("", path.stem) == name)
    return path


def refuses(words, call, error=ValueError):
    "Check that a `call` ends with an `error` that says these `words`."
    with pytest.raises(error, match=words):
        call()
