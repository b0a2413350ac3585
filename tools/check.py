#!/usr/bin/env python3
"""The checks that a change of a notebook needs first, in one to two minutes.

Usage: python tools/check.py NOTEBOOK ...

1. Export all notebooks, clean and format the given ones.
2. Run the given ones and write their outputs (slow cells keep theirs).
3. Run the other notebooks and the tests that use what changed: functions and methods whose code differs from the last commit. Case studies,
   experiments, and tests named after a module of another part are left out unless `--all` is given.

It is a first look. The whole tests (`python -m pytest`) decide.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def command(*words):
    "Run a command in the root of the repository; stop if it fails."
    print("+", *words, flush=True)
    if subprocess.run(list(map(str, words)), cwd=ROOT).returncode:
        sys.exit(1)


def without_docstrings(node):
    "Code of a definition as text, without its docstrings."
    for part in ast.walk(node):
        body = getattr(part, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant):
                body[0] = ast.Pass()
    return ast.dump(node)


def definitions(text):
    "Dict from each function, constant and method (`Class.method`) of a module to its code."
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            found.update({f"{node.name}.{part.name}": without_docstrings(part) for part in methods})
            rest = [ast.dump(part) for part in node.body[1:] if part not in methods]
            found[node.name] = "".join(map(ast.dump, node.bases)) + "".join(rest)
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = without_docstrings(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = ast.dump(node.value)
    return found


def changed_names(module):
    "Definitions of a module that differ from those of the last commit."
    show = ["git", "show", f"HEAD:{module.relative_to(ROOT).as_posix()}"]
    run = subprocess.run(show, cwd=ROOT, capture_output=True, text=True)
    old = definitions(run.stdout) if run.returncode == 0 else {}
    new = definitions(module.read_text(encoding="utf-8"))
    return {name for name in {*old, *new} if old.get(name) != new.get(name) and name != "__all__"}


def uses(text, name):
    "Does code use a definition, by its name? Of a method, the name of the class must stand there, too."
    kind, _, method = name.partition(".")
    named = re.search(rf"\b{kind}\b", text)
    if not method or method.startswith("__"):
        return bool(named)
    return bool(named and re.search(rf"\.{method}\b", text))


def fast_code(path):
    "Code of the cells of a notebook that the tests run."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join(
        text for text in code if not re.search(r"^#\|\s*(slow|notest|export)", text, re.M)
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--all", action="store_true", help="case studies and experiments, too")
    options = parser.parse_args()
    given = [path.resolve() for path in options.notebooks]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    command("ruff", "format", *given)
    command("ruff", "check", *given)
    command("nbdev_export")
    command(sys.executable, "tools/refresh.py", *given)
    for path in given:
        command("nbdev_clean", "--fname", path)
    modules = [path for path in (ROOT / "idm_nb").glob("*/*.py") if path.stem[0] != "_"]
    changes = {path: changed_names(path) for path in modules}
    changed = set().union(*changes.values())
    print("changed:", ", ".join(sorted(changed)) or "no code of the package")
    touched = lambda text: any(uses(text, name) for name in changed)
    others = [path for path in sorted((ROOT / "nbs").glob("*/*.ipynb")) if path not in given]
    read = [path for path in others if options.all or path.parent.name < "13"]
    notebooks = [path for path in read if touched(fast_code(path))]
    nodes = [f"tests/test_notebooks.py::test_notebook[{p.parent.name}/{p.stem}]" for p in notebooks]
    parts = {path.parent.name for path, names in changes.items() if names}
    away = {f"test_{path.stem}.py" for path in modules if path.parent.name not in parts}
    tests = [
        path
        for path in sorted((ROOT / "tests").glob("test_*.py"))
        if touched(path.read_text(encoding="utf-8"))
    ]
    files = {
        path.relative_to(ROOT).as_posix() for path in tests if options.all or path.name not in away
    }
    files = sorted(
        {*files, "tests/test_project.py"} - {"tests/test_notebooks.py", "tests/test_docstrings.py"}
    )
    dotted = (
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path, names in changes.items()
        if names
    )
    nodes += [f"tests/test_docstrings.py::test_docstring_examples[{name}]" for name in dotted]
    command(sys.executable, "-m", "pytest", "-q", *files, *nodes)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    main()
