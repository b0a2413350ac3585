#!/usr/bin/env python3
"""Execute notebooks in place and keep their outputs: they are what the book shows.

Usage: python tools/refresh.py [--slow] [NOTEBOOK ...]        (default: every notebook below nbs/)

Cells marked `#| eval: false` are never run, cells marked `#| slow` only with --slow; a cell that is not run keeps its outputs. It stops
at the first error, without writing that notebook. A slow cell whose output changed carries the version and the date in its metadata; an
output that did not change is left alone, so that a run without a change of the code gives no difference.
"""

import argparse
import os
import signal
import sys
import time
from datetime import date
from pathlib import Path

from execnb.nbio import read_nb, write_nb
from execnb.shell import CaptureShell
from fastcore.foundation import working_directory
from nbdev.clean import clean_nb
from nbdev.process import NBProcessor

ROOT = Path(__file__).resolve().parent.parent


def run(path, slow=False):
    "The notebook at `path` with new outputs of the cells that are run, from its own folder."
    notebook = NBProcessor(path, rm_directives=False, process=True).nb
    shell = CaptureShell(path, mpl_format="png")

    def skipped(cell):
        if cell.cell_type != "code":
            return True
        directives = getattr(cell, "directives_", {}) or {}
        never = directives.get("eval:", [""])[0].lower() == "false"
        if never or ("slow" in directives and not slow):
            return True
        cell.outputs = []
        return shell.exc is not None

    sys.path.insert(0, str(ROOT))
    with working_directory(path.parent):
        shell.run_all(notebook, exc_stop=False, preproc=skipped)
    if shell.exc is not None:
        sys.exit(shell.prettytb(fname=path))
    return notebook


def refresh(path, slow=False):
    "Run the notebook at `path` and write the outputs that changed; returns the number of changed cells."
    from idm_nb import __version__

    written, found = read_nb(path), run(path, slow)
    clean_nb(found, allowed_cell_metadata_keys={"made_with"})
    changed = 0
    for old, new in zip(written.cells, found.cells, strict=True):
        if old.cell_type == "code" and old.outputs != new.outputs:
            old.outputs = new.outputs
            changed += 1
            if "#| slow" in old.source:
                old.metadata["made_with"] = f"{__version__}, {date.today()}"
    if changed:
        write_nb(written, path)
    return changed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "notebooks", nargs="*", type=Path, help="notebooks to run; all of them if none is named"
    )
    parser.add_argument("--slow", action="store_true", help="also run the cells marked slow")
    args = parser.parse_args()
    os.environ.setdefault("IN_TEST", "1")
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # also when a shell starts this in the background
    for path in args.notebooks or sorted((ROOT / "nbs").glob("*/*.ipynb")):
        start = time.perf_counter()
        changed = refresh(path.resolve(), args.slow)
        seconds = time.perf_counter() - start
        print(
            f"{path.parent.name}/{path.stem}: {seconds:.1f} s, {changed} outputs changed",
            flush=True,
        )


if __name__ == "__main__":
    main()
