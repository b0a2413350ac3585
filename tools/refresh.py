#!/usr/bin/env python3
"""Execute notebooks in place and keep the outputs: they are what the book shows.

Usage: python tools/refresh.py [--slow] [NOTEBOOK ...]        (default: every notebook in nbs/)

Cells marked `#| eval: false` are never run, cells marked `#| slow` only with --slow; a cell that is not run keeps
the outputs it has. Stops at the first error, without writing that notebook. Run `nbdev_export` before it and
`nbdev_clean` after it.
"""
import argparse
import os
import sys
import time
from pathlib import Path

from execnb.nbio import read_nb, write_nb
from execnb.shell import CaptureShell
from fastcore.foundation import working_directory
from nbdev.process import NBProcessor

ROOT = Path(__file__).resolve().parent.parent


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
    write_nb(written, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebooks to run; all of them if none is named")
    parser.add_argument("--slow", action="store_true", help="also run the cells marked slow")
    args = parser.parse_args()
    os.environ.setdefault("IN_TEST", "1")
    for path in args.notebooks or sorted((ROOT / "nbs").glob("*.ipynb")):
        start = time.perf_counter()
        refresh(path.resolve(), args.slow)
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
