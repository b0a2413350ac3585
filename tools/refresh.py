#!/usr/bin/env python3
"""Execute notebooks in place and keep the outputs: they are what the book shows.

Usage: python tools/refresh.py [--slow | --stale] [NOTEBOOK ...]        (default: every notebook in nbs/)

Cells marked `#| eval: false` are never run, cells marked `#| slow` only with --slow; a cell that is not run keeps
the outputs it has. Stops at the first error, without writing that notebook. Run `nbdev_export` before it and
`nbdev_clean` after it.

A slow cell that was run carries a stamp in its metadata, the hash of the code of all modules that its notebook imports,
directly or not. `--stale` runs nothing; it lists the slow cells that were made with other code, or that have no stamp.
"""
import argparse
import ast
import hashlib
import json
import os
import re
import sys
import time
from functools import cache
from pathlib import Path

from execnb.nbio import read_nb, write_nb
from execnb.shell import CaptureShell
from fastcore.foundation import working_directory
from nbdev.process import NBProcessor

ROOT = Path(__file__).resolve().parent.parent


@cache
def code_of(module):
    "Code of a module of the package without comments and docstrings, and the modules of the package it imports."
    tree, imports = ast.parse((ROOT / "idm_nb" / f"{module}.py").read_text(encoding="utf-8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            imports |= {node.module} if node.module else {alias.name for alias in node.names}
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            node.body = body[1:]
    return ast.dump(tree), {name for name in imports if name and (ROOT / "idm_nb" / f"{name}.py").exists()}


def modules_of(source):
    "Modules of the package that code uses: those it imports or exports to, and those they import."
    from idm_nb import _HOME

    found = set(re.findall(r"idm_nb\.(\w+) import|#\|\s*default_exp (\w+)", source))
    found = {name for pair in found for name in pair if name}
    for names in re.findall(r"from idm_nb import (?:\(([^)]*)\)|(.*))", source):
        found |= {_HOME[name] for name in re.findall(r"\w+", "".join(names)) if name in _HOME}
    while more := {name for module in found for name in code_of(module)[1]} - found:
        found |= more
    return sorted(found)


def stamp(cells):
    "Hash of the code of the package that the cells of a notebook use."
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    code = "\n".join(code_of(module)[0] for module in modules_of(source))
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def stale(path):
    "First lines of the slow cells of a notebook whose outputs were made with other code than there is now."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    slow = [cell for cell in cells if cell["cell_type"] == "code" and "#| slow" in "".join(cell["source"])]
    now = stamp(cells) if slow else None
    lines = lambda cell: [line for line in "".join(cell["source"]).split("\n") if not line.startswith("#|")]
    return [lines(cell)[0] for cell in slow if cell["outputs"] and cell["metadata"].get("made_with") != now]


def refresh(path, slow=False):
    "Run the notebook at `path` from its own folder and write it back with the new outputs."
    notebook = NBProcessor(path, rm_directives=False, process=True).nb
    shell = CaptureShell(path, mpl_format="png")

    def kept(cell):
        if cell.cell_type != "code":
            return True
        directives = getattr(cell, "directives_", {}) or {}
        never = directives.get("eval:", [""])[0].lower() == "false"
        if never or ("slow" in directives and not slow):
            return True
        cell.outputs = []
        return False

    with working_directory(path.parent):
        shell.run_all(notebook, exc_stop=False, preproc=lambda c: kept(c) or shell.exc is not None)
    if shell.exc is not None:
        sys.exit(shell.prettytb(fname=path))
    written = read_nb(path)
    for old, new in zip(written.cells, notebook.cells):
        if old.cell_type == "code":
            old.outputs = new.outputs
            if slow and "#| slow" in old.source:
                old.metadata["made_with"] = stamp(written.cells)
    write_nb(written, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebooks to run; all of them if none is named")
    parser.add_argument("--slow", action="store_true", help="also run the cells marked slow")
    parser.add_argument("--stale", action="store_true", help="only list slow cells that were made with other code")
    args = parser.parse_args()
    notebooks = args.notebooks or sorted((ROOT / "nbs").glob("*.ipynb"))
    if args.stale:
        for path in notebooks:
            for line in stale(path):
                print(f"{path.name}: {line}")
        return
    os.environ.setdefault("IN_TEST", "1")
    for path in notebooks:
        start = time.perf_counter()
        refresh(path.resolve(), args.slow)
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
