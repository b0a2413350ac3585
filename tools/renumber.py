#!/usr/bin/env python3
"""Give every chapter the number that the site shows, and write the list of chapters of `_quarto.yml`.

Usage: python tools/renumber.py

The order is that of the folders and of the file names, so a chapter that is put between 17 and 18 is called `17b_name.ipynb` until this
is run. Quarto counts through all parts; pages with `- unnumbered: true` under their title count in their own folder. Links follow in notebooks,
pages, tests and tools. Run `nbdev_export` after it.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"


def new_names():
    "Dict from the path of each notebook below nbs/ to its name with the right number."
    found, number, own = {}, 0, {}
    for path in sorted(NBS.glob("*/*.ipynb")):
        stem = re.sub(r"^\d+[a-z]?_", "", path.name)
        if "- unnumbered: true" in path.read_text(encoding="utf-8"):
            own[path.parent] = own.get(path.parent, -1 + (path.parent.name == "00_start")) + 1
            found[path] = f"{own[path.parent]:02d}_{stem}"
        else:
            number += 1
            found[path] = f"{number:02d}_{stem}"
    return found


def write_chapters():
    "The list of chapters in `_quarto.yml`, with the titles that its parts have."
    path = ROOT / "_quarto.yml"
    lines, out, inside = path.read_text(encoding="utf-8").split("\n"), [], False
    for line in lines:
        if not inside or not re.match(r"        - \d\d_\w+/", line):
            out.append(line)
        if folder := re.match(r"        - (\d\d_\w+)/", line):
            if not inside:
                out.pop()
                out += [
                    f"        - {folder[1]}/{p.name}"
                    for p in sorted((NBS / folder[1]).glob("*.ipynb"))
                ]
            inside = True
        else:
            inside = False
    path.write_text("\n".join(out), encoding="utf-8")


def main():
    names = {path: name for path, name in new_names().items() if path.name != name}
    for path, name in names.items():  # in two steps, for two may exchange their names
        subprocess.run(["git", "mv", path, path.with_name(f"moving_{name}")], check=True)
    for path, name in names.items():
        subprocess.run(
            ["git", "mv", path.with_name(f"moving_{name}"), path.with_name(name)], check=True
        )
    known = {
        f"{path.parent.name}/{path.name}": f"{path.parent.name}/{name}"
        for path, name in names.items()
    }
    pages = [
        *NBS.glob("*/*.ipynb"),
        *NBS.glob("*.qmd"),
        *ROOT.glob("t[eo]*/*.py"),
        *ROOT.glob("*.md"),
    ]
    for page in pages:
        before = page.read_text(encoding="utf-8")
        text = re.sub(r"\d\d_\w+/\d\d\w?_\w+\.ipynb", lambda m: known.get(m[0], m[0]), before)
        if page.parent.parent == NBS:  # links within a folder
            own = lambda m, part=page.parent.name: known.get(
                f"{part}/{m[1]}", f"{part}/{m[1]}"
            ).partition("/")[2]
            text = re.sub(r"(?<=\]\()(\d\d\w?_\w+\.ipynb)", own, text)
        if text != before:
            page.write_text(text, encoding="utf-8")
    write_chapters()
    print(f"{len(names)} notebooks renamed")


if __name__ == "__main__":
    main()
