"""Docstrings name every argument, and their examples run."""

import doctest
import importlib
import inspect
import re
import warnings
from dataclasses import is_dataclass

import pytest
from book import MODULES, module_name


def module_of(path):
    return importlib.import_module(module_name(path))


PUBLIC = [
    (module_name(path), name)
    for path in MODULES
    for name in module_of(path).__all__
    if callable(getattr(module_of(path), name))
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


def functions(module):
    "Functions of a module and methods of its classes that are no dataclasses, with what `help` says of them."
    own = [
        part for part in vars(module).values() if getattr(part, "__module__", "") == module.__name__
    ]
    for found in own:
        parts = (
            {} if is_dataclass(found) else vars(found) if isinstance(found, type) else {"": found}
        )
        for name in filter(lambda name: inspect.isfunction(parts[name]), parts):
            text = inspect.getdoc(getattr(found, name) if name else found) or ""
            yield parts[name], text + (found.__doc__ or "") * (name == "__init__")


def test_docstrings_of_all_functions_name_their_arguments():
    missing, count = [], 0
    for function, text in (pair for path in MODULES for pair in functions(module_of(path))):
        given = inspect.signature(function).parameters.values()
        names = [a.name for a in given if a.kind not in (a.VAR_KEYWORD, a.VAR_POSITIONAL)]
        names = [name for name in names if name not in ("self", "cls")]
        if len(names) > 2 and not re.match("_(?!_init__)", function.__name__):
            unnamed = [name for name in names if not re.search(rf"\b{name}\b", text)]
            missing += [(function.__qualname__, unnamed)] * bool(unnamed)
            count += 1
    assert count > 300 and not missing


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_docstring_examples(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert doctest.testmod(module_of(path)).failed == 0
