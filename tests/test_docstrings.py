"""Docstrings of public names explain every argument, and their examples run."""

import doctest
import importlib
import inspect
import re
import warnings

import pytest
from book import MODULES, module_name


def module_of(path):
    return importlib.import_module(module_name(path))


PUBLIC = [
    (f"idm_nb.{part}", name)
    for part in sorted({path.parent.name for path in MODULES})
    for name in importlib.import_module(f"idm_nb.{part}").__all__
    if callable(getattr(importlib.import_module(f"idm_nb.{part}"), name))
]


@pytest.mark.parametrize("module, name", PUBLIC)
def test_docstring(module, name):
    found = getattr(importlib.import_module(module), name)
    text = found.__doc__ or ""
    assert text.strip()
    if not isinstance(found, type) or "__init__" in vars(found):
        given = inspect.signature(found).parameters.values()
        names = [a.name for a in given if a.kind not in (a.VAR_KEYWORD, a.VAR_POSITIONAL)]
        assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_docstring_examples(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert doctest.testmod(module_of(path)).failed == 0
