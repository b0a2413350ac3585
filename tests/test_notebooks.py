"""Every notebook runs from top to bottom; its assertions are the main tests of the package.

Cells marked `slow` are left out; `tools/refresh.py --slow` runs them.
"""

import matplotlib
import pytest
from book import NOTEBOOKS, name_of
from refresh import run


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_notebook(path):
    matplotlib.use("agg")
    try:
        run(path)
    finally:
        matplotlib.pyplot.close("all")
