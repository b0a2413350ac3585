"""Every public name says what it takes, what it gives, and shows it."""

import doctest
import importlib
import inspect
import re
import warnings

import pytest
from book import MODULES, module_name

# bases to be subclassed, sisters of what has one, and what other parts of the package make
NO_EXAMPLE = {
    "Ellipse",
    "Embedding",
    "ErrorModel",
    "FeatureEstimate",
    "FlatTorus",
    "Flow",
    "FlowTask",
    "Manifold",
    "Metric",
    "Relevance",
    "Sphere",
    "Storage",
    "TableModel",
    "Verdict",
    "load",
    "model_report",
}
PUBLIC = [
    (module_name(path), name)
    for path in MODULES
    for name in importlib.import_module(module_name(path)).__all__
    if callable(getattr(importlib.import_module(module_name(path)), name))
]


def sections(text):
    "Underlined headings of a docstring."
    return set(re.findall(r"^(\w[\w ]*)\n-{3,}$", inspect.cleandoc(text), flags=re.MULTILINE))


def arguments(function):
    "Names of the arguments that a caller gives."
    given = list(inspect.signature(function).parameters.values())
    return [
        a.name
        for a in given
        if a.name not in ("self", "cls") and a.kind not in (a.VAR_KEYWORD, a.VAR_POSITIONAL)
    ]


def test_there_are_public_names():
    assert len(PUBLIC) > 50 and NO_EXAMPLE < {name for _, name in PUBLIC}


@pytest.mark.parametrize("module, name", PUBLIC)
def test_docstring(module, name):
    found = getattr(importlib.import_module(module), name)
    text, headings = found.__doc__ or "", sections(found.__doc__ or "")
    makes = found.__init__ if isinstance(found, type) else found
    names = arguments(makes) if "__init__" in vars(found) or not isinstance(found, type) else []
    missing = [a for a in names if not re.search(rf"\b{a}\b", text)]
    assert not missing, f"{name} does not describe {missing}"
    assert not names or headings & {"Parameters", "Attributes"}, f"{name} has no section Parameters"
    if not isinstance(found, type):
        assert headings & {"Returns", "Raises"} or "returns" in text.lower(), (
            f"{name} does not say what it returns"
        )
    assert ">>> " in text or name in NO_EXAMPLE, f"{name} shows no example"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_docstring_examples(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert doctest.testmod(importlib.import_module(module_name(path))).failed == 0
