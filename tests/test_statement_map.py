"""The appendix that leads from the papers to the book is complete, and its places exist."""

import re

import pytest
from book import NOTEBOOKS, notebook, sources

PAPERS = {  # equations, figures, and the other numbered items
    "sec-map-idm": (
        [*map(str, range(1, 21)), *(f"A.{k}" for k in range(1, 7))],
        [*map(str, range(1, 14)), "B.14", "B.15"],
        ["Theorem 2.1", "Theorem 3.1", "Corollary 3.2", "Algorithm 1", "Algorithm 2"],
    ),
    "sec-map-earlier": (
        map(str, range(1, 14)),
        map(str, range(1, 4)),
        ["Theorem 2.1", "Theorem 3.2", "Corollary 3.3"],
    ),
    "sec-map-local": (
        map(str, range(1, 21)),
        map(str, range(1, 6)),
        [f"Definition {k}" for k in ("3.1", "3.2", "3.3", "3.4", "3.5", "3.10", "4.1")]
        + [
            "Proposition 3.6",
            "Example 3.7",
            "Lemma 3.8",
            "Lemma 3.9",
            "Lemma 3.11",
            "Theorem 3.12",
            "Lemma 4.2",
        ]
        + ["Lemma 4.3", "Theorem 4.4", "Corollary 4.5", "Theorem 4.6", "Theorem 4.7", "Theorem 4.8"]
        + ["Example 5.1", "Example 5.2", "Example 5.3"],
    ),
    "sec-map-ica": (map(str, range(1, 53)), map(str, range(1, 8)), []),
    "sec-map-cameron": (
        map(str, range(1, 60)),
        map(str, range(1, 11)),
        ["Definition 1", "Definition 2", "Proposition 1"],
    ),
}


def labels(paths):
    text = "\n".join(source for path in paths for source in sources(path))
    found = re.findall(r"\{#((?:sec|eq|thm|fig)-[\w-]+)[^}]*\}", text)
    return {*found, *re.findall(r"#\|\s*label:\s*((?:fig|tbl)-[\w-]+)", text)}


def rows(label):
    "First and last column of the table under a heading."
    (table,) = [
        source for source in sources(notebook("statement_map")) if f"{{#{label}}}" in source
    ]
    lines = [line.strip("| ") for line in table.splitlines() if line.startswith("|")][2:]
    return [(re.split(r"\s*\|\s*", line)[0], re.split(r"\s*\|\s*", line)[-1]) for line in lines]


def expand(item):
    "The items that the first column of a row names, ranges written out."
    found = []
    for part in item.split(", "):
        name, _, last = part.partition(" to ")
        found.append(name)
        if last:
            first = re.search(r"\d+\)?$", name)
            start, end = (int(re.search(r"(\d+)\)?$", text)[1]) for text in (name, last))
            tail = ")" if name.endswith(")") else ""
            found += [f"{name[: first.start()]}{k}{tail}" for k in range(start + 1, end + 1)]
    return found


@pytest.mark.parametrize("label", PAPERS)
def test_every_item_of_a_paper_has_a_place(label):
    named = [item for first, _ in rows(label) for item in expand(first)]
    equations, figures, others = PAPERS[label]
    wanted = [f"({k})" for k in equations] + [f"Figure {k}" for k in figures] + others
    assert not set(wanted) - set(named)
    assert len(named) == len(set(named)), [item for item in named if named.count(item) > 1]


@pytest.mark.parametrize("label", PAPERS)
def test_every_place_exists(label):
    known = labels([path for path in NOTEBOOKS if not path.stem.endswith("statement_map")])
    for item, places in rows(label):
        found = re.findall(r"@([a-z]+-[\w-]*\w)", places)
        assert found, f"{item} has no place"
        assert not set(found) - known, f"{item}: {set(found) - known}"
        if "corrected" in places:
            last = found[-1]
            assert last.startswith("sec-"), f"{item} does not say where it is corrected"
