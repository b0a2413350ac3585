#!/usr/bin/env python3
"""The checks that a change needs first, in about two minutes.

Usage: python tools/check.py [--all | --seconds N] [--since REVISION] [NOTEBOOK ...]

1. Format and export the given notebooks, run them and write their outputs (slow cells keep theirs).
2. Run the tests and the other notebooks that use a definition whose code differs from that of the last commit (`dependencies.py` says
   which): tests/test_project.py, then the nearest ones, and of these the quick ones first. When the time is over, the rest is left
   out and listed.

It is a first look. The whole tests (`python -m pytest`) decide.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parent.parent
LATE = "the time of the first look was over"
EXAMPLES = "tests/test_docstrings.py::test_docstring_examples[{}]"
ALWAYS = ("tests/test_project.py", "tests/test_docstrings.py::test_docstring")


def command(*words):
    "Run a command in the root of the repository; stop if it fails."
    print("+", *words[:9], *(["..."] if len(words) > 9 else []), flush=True)
    if subprocess.run(list(map(str, words)), cwd=ROOT).returncode:
        sys.exit(1)


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def refresh(notebooks):
    "Format, export and run notebooks."
    if notebooks:
        command("ruff", "format", *notebooks)
        command("ruff", "check", *notebooks)
        command("nbdev_export")
        command(sys.executable, "tools/refresh.py", *notebooks)
    for path in notebooks:
        command("nbdev_clean", "--fname", path)


def plan(since, given):
    "From each test that uses what changed since a revision to its distance, and the names of what changed."
    from dependencies import Uses

    patterns = ("idm_nb/**/*.py", "idm_nb/**/*.pyi", "tests/*.py", "tools/*.py", "nbs/*/*.ipynb")
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    new = git("ls-files", "--others", "--exclude-standard", "idm_nb", "tests", "tools").split()
    names = {*git("diff", "--name-only", since, "idm_nb", "tests", "tools").split(), *new}
    code = [name for name in names if name.endswith((".py", ".pyi"))]
    uses = Uses(files, {name: git("show", f"{since}:{name}") for name in code})
    named = [uses.names[f".{Path(name).name}"] for name in names.difference(code)]  # pages
    changed = uses.changed.union(*named)
    found = {EXAMPLES.format(path.removesuffix(".py").replace("/", ".")): 1 for path in code}
    for (module, name), distance in uses.distances(changed).items():
        if module.endswith(".ipynb") and ROOT / module not in given:
            chapter = module.removeprefix("nbs/").removesuffix(".ipynb")
            found[f"tests/test_notebooks.py::test_notebook[{chapter}]"] = distance
        elif module.startswith("idm_nb."):
            test = EXAMPLES.format(module)
            found[test] = min(distance + 1, found.get(test, distance + 1))
        elif name.startswith("test_"):
            found[f"tests/{module}.py::{name}"] = distance
    return found | dict.fromkeys(ALWAYS, 0), sorted(f"{module}.{name}" for module, name in changed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="leave nothing out")
    parser.add_argument("--seconds", type=float, default=90, help="for the tests; default 90")
    parser.add_argument("--since", default="HEAD", help="compare with this revision")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    given = [path.resolve() for path in options.notebooks]
    refresh(given)
    distances, changed = plan(options.since, given)
    print("changed:", ", ".join(changed) or "no code")
    seconds = float("inf") if options.all else options.seconds
    with TemporaryDirectory() as folder:
        os.environ["IDM_NB_PLAN"] = f"{folder}/plan.json"
        written = json.dumps({"distances": distances, "until": time.time() + seconds})
        Path(os.environ["IDM_NB_PLAN"]).write_text(written)
        files = sorted({name.partition("::")[0] for name in distances})
        order = ["--dist", "load", "--maxschedchunk", "1", "--continue-on-collection-errors"]
        order += ["--durations", "5", "-r", "fE"]
        command(sys.executable, "-m", "pytest", "-q", "-p", "tools.check", *order, *files)


@cache
def the_plan():
    return json.loads(Path(os.environ["IDM_NB_PLAN"]).read_text())


def pytest_collection_modifyitems(config, items):
    """Keep the tests of the plan, the nearest first.

    One that lasts four times as long counts as a step further, and so does one with the third of
    its parameters beside that with the first: each test shall run once before others run again.
    """
    distances, seconds = the_plan()["distances"], config.cache.get("idm_nb/seconds", {})
    order, met = {}, Counter()
    for item in items:
        names = item.nodeid, item.nodeid.partition("[")[0], item.nodeid.partition("::")[0]
        is_page = "test_notebooks.py" in names[2]
        if steps := [distances[name] for name in names if name in distances]:
            kind = names[0] if is_page else names[1]
            costs = int(seconds.get(item.nodeid, 8 * is_page)), met[kind]
            order[item] = min(steps) + sum(cost.bit_length() for cost in costs) / 2
            met[kind] += 1
    config.hook.pytest_deselected(items=[item for item in items if item not in order])
    items[:] = sorted(order, key=order.get)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if time.time() > the_plan()["until"]:
        pytest.skip(LATE)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    return ("left out", "", "") if LATE in str(report.longrepr) else None


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("left out", [])
    late = Counter(report.nodeid.partition("::")[0] for report in reports)
    if late:
        print(f"Left out, because {LATE} (--all runs them):")
        print("; ".join(f"{count} of {file}" for file, count in sorted(late.items())))


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    main()
