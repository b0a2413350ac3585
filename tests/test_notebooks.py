"""Every notebook runs from top to bottom; its assertions are the main tests of the package.

Cells marked `slow` are left out; `tools/refresh.py --slow` runs them.
"""

import os
from pathlib import Path

import matplotlib
import pytest
from nbdev.test import test_nb as run_notebook

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "nbs").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    matplotlib.use("agg")
    before = os.getcwd()
    try:
        passed, _ = run_notebook(path, skip_flags=["notest", "slow"], basepath=ROOT)
    finally:
        os.chdir(before)
        matplotlib.pyplot.close("all")
    assert passed, f"{path.name} failed; its error is above"
