#!/usr/bin/env python3
"""Give each notebook the number of its place in the book: the list of chapters in `_quarto.yml` is the order.

Usage: python tools/renumber.py [OLD=NEW ...]

To add a chapter, write it without a number, `nbs/08_branches/new.ipynb`, name it at its place in the list, and run this. OLD=NEW moves or
renames one, as in `08_branches/24_contrast.ipynb=09_map/contrast.ipynb`; then set its line in the list to its place and run this again.
Chapters count 1, 2, ..., appendices A, B, ...; pages of a folder without a number have none. Links follow. A page whose address changes
lists the old one in its first cell (`aliases`), and the site redirects.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from string import ascii_uppercase

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = re.compile(r"[\w/]+\.ipynb")
LINK = re.compile(r"(?<![\w/.\-])(?:\.\./|\w+/)*\w+\.ipynb")
NUMBER = re.compile(r"^(\d+[a-z]?|[A-Z])_")
TEXT = {".ipynb", ".qmd", ".md", ".py", ".yml", ".toml", ".txt", ".cff"}


def git(*words):
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def address(path):
    "Address of the page of a notebook, both below the site."
    folder, _, name = path.rpartition("/")
    return f"{folder}/{NUMBER.sub('', name).removesuffix('.ipynb').lower()}.html"


def places(book):
    "From each chapter in the text of `_quarto.yml` to its path with the number of its place."
    found, number, letters = {}, 0, iter(ascii_uppercase)
    chapters, _, appendices = book.partition("\n  appendices:")
    for path in CHAPTER.findall(chapters):
        folder, _, name = path.rpartition("/")
        name = NUMBER.sub("", name)
        if folder[0].isdigit():
            number += 1
            name = f"{number:02}_{name}"
        found[path] = f"{folder}/{name}"
    for path in CHAPTER.findall(appendices):
        folder, _, name = path.rpartition("/")
        found[path] = f"{folder}/{next(letters)}_{NUMBER.sub('', name)}"
    return found


def relinked(text, file, moved):
    "The text of a `file` below the root in which links lead to where notebooks have `moved`."
    inside = file.startswith("nbs/")
    before = os.path.dirname(file.removeprefix("nbs/")) if inside else ""
    after = os.path.dirname(moved.get(file.removeprefix("nbs/"), file.removeprefix("nbs/")))

    def changed(match):
        link = match[0]
        for start in (before, ""):  # relative to the page, or below nbs/
            prefix = "nbs/" if link.startswith("nbs/") else ""
            target = os.path.normpath(os.path.join(start, link.removeprefix(prefix)))
            new = moved.get(target, target)
            if (ROOT / "nbs" / target).exists() and (new != target or before != after):
                return prefix + (new if prefix or not start else os.path.relpath(new, after))
            if (ROOT / "nbs" / target).exists():
                return link
        return link

    text = LINK.sub(changed, text)
    for old, new in moved.items():
        if address(old) != address(new):
            text = re.sub(
                rf"(?<!\[/)(?<!, /)(?<![\w-]){re.escape(address(old))}", address(new), text
            )
    return text


def with_alias(text, old):
    "The text of a notebook whose first cell lists one more old address."
    notebook = json.loads(text)
    first = "".join(notebook["cells"][0]["source"])
    known = re.search(r"^- aliases: \[(.*)\]$", first, re.M)
    line = f"- aliases: [{known[1] + ', ' if known else ''}/{old}]"
    first = first.replace(known[0], line) if known else f"{first}\n{line}"
    notebook["cells"][0]["source"] = first.splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def move(moved):
    "Move notebooks, as a dict from old to new paths below `nbs`, and all links to them."
    moved = {old: new for old, new in moved.items() if old != new}
    files = [file for file in git("ls-files").split("\n") if Path(file).suffix in TEXT]
    for file in files:
        if re.match(r"idm_nb/\w+/(?!__init__)", file) or file == "tools/renumber.py":
            continue  # nbdev writes it
        text = (ROOT / file).read_text("utf-8")
        if (new := relinked(text, file, moved)) != text:
            (ROOT / file).write_text(new, "utf-8")
    for old in moved:
        git("mv", f"nbs/{old}", f"nbs/{old}.moved")
    for old, new in moved.items():
        (ROOT / "nbs" / new).parent.mkdir(exist_ok=True)
        git("mv", f"nbs/{old}.moved", f"nbs/{new}")
        if address(old) != address(new):
            path = ROOT / "nbs" / new
            path.write_text(with_alias(path.read_text("utf-8"), address(old)), "utf-8")
    return len(moved)


if __name__ == "__main__":
    move(dict(pair.split("=") for pair in sys.argv[1:]))
    print(move(places((ROOT / "_quarto.yml").read_text("utf-8"))), "notebooks have a new number")
