"""A number in prose that claims a result is computed in a cell of the same notebook."""

import ast
import io
import json
import re
import tokenize
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "nbs").glob("*.ipynb"))
NUMBER = re.compile(r"(?<![\w.@-])(\d*\.\d+|\d+(?= per cent))(?![\w.]*\.\d)")
PLACES = r"(?i)(sections?|chapters?|theorem|lemma|corollary|proposition|definition|example|figures?|version|python)\s*[\d.]+"


def cells(path, kind):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [("".join(c["source"]), c.get("outputs", [])) for c in found if c["cell_type"] == kind]


def computed(path):
    "Numbers in code and outputs of a notebook."
    text = []
    for source, outputs in cells(path, "code"):
        text.append(source)
        for output in outputs:
            text.append("".join(output.get("text", [])))
            data = output.get("data", {})
            text += ["".join(data.get(kind, [])) for kind in ("text/plain", "text/markdown")]
    return {abs(float(x)) for x in re.findall(r"(?<!\w)-?\d*\.?\d+(?:e-?\d+)?", " ".join(text))}


def claimed(source):
    "Decimal numbers and percentages of a markdown cell, outside of formulas, code, tables and places in papers."
    for pattern in (r"(?s)\$\$.*?\$\$", r"\$[^$]*\$", r"`[^`]*`", r"\[@[^\]]*\]|\(@[^)]*\)", r"(?m)^\|.*$", PLACES):
        source = re.sub(pattern, " ", source)
    return [match[1] for match in NUMBER.finditer(source)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_in_prose_are_computed(path):
    pool = computed(path)
    for source, _ in cells(path, "markdown"):
        for number in claimed(source):
            digits = len(number.partition(".")[2])
            shown = {round(y, digits) for x in pool for y in (x, 100 * x, 100 * abs(x - 1))}
            assert any(abs(float(number) - x) < 1e-9 for x in shown), f"{number} in {source[:80]!r}"


def test_a_claim_without_a_cell_is_found():
    assert claimed("Recall is .97, as in section 3.2 ($\\tau = 0.95$), for 12 per cent.") == [".97", "12"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_assertion_takes_the_best_of_several_steps(path):
    "A diverged last step must not pass because an earlier one was good: no `min(x[1:])` in an assertion."
    for source, _ in cells(path, "code"):
        tree = ast.parse(re.sub(r"(?m)^[%!].*$", "pass", source))
        for test in (node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)):
            for call in (node for node in ast.walk(test) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id == "min" and len(call.args) == 1:
                    slices = isinstance(call.args[0], ast.Subscript) and isinstance(call.args[0].slice, ast.Slice)
                    later = slices and ast.unparse(call.args[0].slice) == "1:"
                    assert not later, f"{path.name}: {ast.unparse(test)}"


ROUNDING = 1e-6  # what double precision leaves after an eigensolver; a looser tolerance says why


def tolerances(test):
    "Literal values of the tolerances that an expression names."
    names = ("rtol", "atol", "rel", "abs")
    given = [k.value for node in ast.walk(test) if isinstance(node, ast.Call) for k in node.keywords if k.arg in names]
    numbers = (node.value for part in given for node in ast.walk(part) if isinstance(node, ast.Constant))
    return [number for number in numbers if isinstance(number, float)]


def deviations(test):
    "Bounds of differences in an expression: the literals of `abs(... - ...) < bound`, with whatever is done to the left side."
    found = []
    for node in (node for node in ast.walk(test) if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt)):
        calls = (call for call in ast.walk(node.left) if isinstance(call, ast.Call) and call.args)
        names = {getattr(call.func, "id", getattr(call.func, "attr", "")): call.args[0] for call in calls}
        difference = isinstance(names.get("abs"), ast.BinOp) and isinstance(names["abs"].op, ast.Sub)
        bound = node.comparators[0]
        if difference and isinstance(bound, ast.Constant) and isinstance(bound.value, float):
            found.append(bound.value)
    return found


def without_a_reason(source):
    "Assertions with a tolerance above rounding and no comment on their lines or on the one before."
    source = re.sub(r"(?m)^[%!].*$", "pass", source)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    said = {token.start[0] for token in tokens if token.type == tokenize.COMMENT and not token.string.startswith("#|")}
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        and max(tolerances(node.test) + deviations(node.test), default=0) > ROUNDING
        and not said & set(range(node.lineno - 1, node.end_lineno + 1))
    ]


@pytest.mark.parametrize("path", [*NOTEBOOKS, *Path(__file__).parent.glob("test_*.py")], ids=lambda path: path.stem)
def test_tolerances_have_a_reason(path):
    if path.suffix == ".py":
        sources = [path.read_text(encoding="utf-8")]
    else:
        sources = [source for source, _ in cells(path, "code")]
    assert not [found for source in sources for found in without_a_reason(source)]


def test_a_tolerance_without_a_reason_is_found():
    assert without_a_reason("assert np.allclose(a, b, rtol=0.1)") and without_a_reason("assert a == approx(b, rel=1e-3)")
    assert without_a_reason("assert np.abs(a / b - 1).max() < 0.1") and not without_a_reason("assert error < 0.1")
    assert not without_a_reason("# two digits are printed\nassert np.allclose(a, b, rtol=0.1)")
    assert not without_a_reason("assert np.allclose(a, b, atol=1e-9)")
