"""Every notebook runs from top to bottom; its assertions are the main tests of the package.

Cells marked `slow` are left out; `tools/refresh.py --slow` runs them.
"""

import os

import matplotlib
import pytest
from book import NOTEBOOKS, ROOT, name_of
from nbdev.test import test_nb as run_notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook(path):
    matplotlib.use("agg")
    before = os.getcwd()
    try:
        passed, _ = run_notebook(path, skip_flags=["notest", "slow"], basepath=ROOT)
    finally:
        os.chdir(before)
        matplotlib.pyplot.close("all")
    assert passed, f"{name_of(path)} failed; its error is above"
