"""The book holds together: links, references and figures of the notebooks, the statement map, and the pages around them."""

import importlib
import inspect
import json
import re
from contextlib import redirect_stdout
from io import StringIO

import pytest
import yaml
from book import NBS, NOTEBOOKS, ROOT, cells_of, name_of, notebook, source, sources
from renumber import address, places
from thumbnails import FRONT, pictures

from idm_nb import IteratedDiffusionMap
from idm_nb.command.jobs import demo_table
from tools import site

HOME, README = NBS / "index.qmd", ROOT / "README.md"
GENERATED = sorted(NBS.glob("*/*.qmd.py"))  # pages that nbdev writes when the site is built
ADDRESSES = {address(path.relative_to(NBS).as_posix()) for path in NOTEBOOKS}
ADDRESSES |= {path.relative_to(NBS).as_posix().replace(".qmd.py", ".html") for path in GENERATED}
SIZES = {  # pages and words of each shelf today, and the goal: delete before you add
    "guide": (9, 7050, (14, 13000)),
    "method": (36, 47023, (36, 47000)),
    "source": (21, 5560, (25, 12500)),
    "evidence": (6, 8987, (10, 10000)),
}
REFERENCE = "reference/reference.qmd"
LABEL = r"^#\|\s*label:\s*((?:fig|tbl)-[\w-]+)"


def shown(path):
    "Markdown of a notebook: its text, and outputs that are Markdown."
    outputs = [output for cell in cells_of(path, "code") for output in cell["outputs"]]
    tables = ["".join(output.get("data", {}).get("text/markdown", "")) for output in outputs]
    return "\n\n".join([*sources(path, "markdown"), *tables])


def prose(path):
    "What is shown and the captions, without code."
    text = re.sub(r"^(```+).*?^\1", "", shown(path), flags=re.M | re.S)
    captions = re.findall(r"^#\| fig-cap: .*$", "\n".join(sources(path, "code")), re.M)
    return "\n".join([re.sub(r"`[^`\n]*`", "", text), *captions])


def labels(path):
    "Labels of sections, equations and theorems, then of figures and tables."
    text = "\n".join(sources(path, "markdown"))
    found = re.findall(r"\{#((?:sec|eq|thm|fig|tbl)-[\w-]+)", text)
    return found + re.findall(LABEL, "\n".join(sources(path, "code")), re.M)


def anchors(path):
    "What a link to a place on a page may name."
    headings = re.findall(r"^#+ ([\w -]+)$", shown(path), re.M)
    slugs = {heading.strip().lower().replace(" ", "-") for heading in headings}
    return slugs | set(labels(path)) | set(re.findall(r"\{#([\w.-]+)", shown(path)))


def test_references_lead_to_one_place():
    known = [label for path in NOTEBOOKS for label in labels(path)]
    assert len(known) == len(set(known)), [label for label in known if known.count(label) > 1]
    keys = re.findall(r"^@\w+\{(\w+),", (NBS / "references.bib").read_text(), re.M)
    for path in NOTEBOOKS:
        for name in re.findall(r"(?<![\w`/])@([a-zA-Z][\w-]*\w)", prose(path)):
            assert name in known or name in keys, f"{name_of(path)}: @{name}"


def test_no_citation_becomes_the_number_of_a_list():
    for path in NOTEBOOKS:  # for pandoc, a paragraph, or a line of an item, that begins with `@key.` or `(@key)` is a list
        assert not re.search(r"(^|\n\n|\n +)\(?@[\w-]+[.)]", shown(path)), name_of(path)


def test_links_lead_somewhere():
    pages = [(path, prose(path)) for path in NOTEBOOKS]
    for page, text in [*pages, *((path, path.read_text()) for path in NBS.glob("*.qmd"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "//" not in target:
                file, _, anchor = target.partition("#")
                there = (page.parent / file).resolve() if file else page
                if there.with_name(there.name + ".py") in GENERATED:
                    assert not anchor or anchor in site.entries_of_reference(), target
                else:
                    assert there.exists(), f"{page.name}: {target}"
                    assert not anchor or anchor in anchors(there), f"{page.name}: {target}"
    programs = re.findall(r"\]\((\S+)\)", (NBS / "llms.txt").read_text())
    assert programs and set(programs) <= ADDRESSES


def test_links_of_the_readme_are_absolute_and_lead_somewhere():
    here = "https://idm-nb.github.io/idm_nb/"
    raw = "https://raw.githubusercontent.com/idm-nb/idm_nb/main/"
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text()):
        assert target.startswith("https://"), target
        if target.startswith(here):
            page = target.removeprefix(here).partition("#")[0]
            assert page in ("", *ADDRESSES, *(f"{shelf}.html" for shelf in SIZES)), target
        assert not target.startswith(raw) or (ROOT / target.removeprefix(raw)).exists(), target


def shelf_of(path):
    "Shelf of the book on which a notebook says that it stands."
    found = re.search(r"^- shelf: (\w+)$", sources(path)[0], re.M)
    assert found, f"{name_of(path)}: the first cell needs a line like '- shelf: guide'"
    return found[1]


BOOK = (ROOT / "_quarto.yml").read_text()


def test_the_site_has_every_notebook_once_on_its_shelf():
    book = yaml.safe_load(BOOK)["book"]
    parts = {entry["part"]: entry["chapters"] for entry in book["chapters"] if "part" in entry}
    assert set(parts) == {entry["href"] for entry in book["navbar"]["left"]}
    listed = [name for part, names in parts.items() for name in [part, *names]]
    listed += book["appendices"]
    assert sorted(set(listed)) == sorted(listed)
    assert {f"{name_of(path)}.ipynb" for path in NOTEBOOKS} <= set(listed)
    for path in NOTEBOOKS:
        part = REFERENCE if shelf_of(path) == "reference" else f"{shelf_of(path)}.qmd"
        name = f"{name_of(path)}.ipynb"
        assert name in [*parts[part], *book["appendices"]], f"_quarto.yml: {name}"
        assert part == REFERENCE or f"({name})" in (NBS / part).read_text(), f"{part}: {name}"


def test_the_number_of_a_file_is_that_of_its_chapter_on_the_site():
    assert [old for old, new in places(BOOK).items() if old != new] == [], "run tools/renumber.py"
    for path in NOTEBOOKS:
        is_counted = "- unnumbered: true" not in sources(path)[0]
        assert is_counted == bool(re.match(r"\d\d_|[A-Z]_", path.name)), name_of(path)


def test_pages_of_the_guide_install_the_package():
    for path in NOTEBOOKS:
        code = "\n".join(sources(path, "code"))
        is_guide = shelf_of(path) == "guide"
        assert not is_guide or re.search(r"^%pip install .*idm_nb", code, re.M), name_of(path)


def words(path):
    "Number of words of the text of a notebook, without code."
    text = re.sub(r"```.*?```", "", "\n".join(sources(path, "markdown")), flags=re.S)
    return len(re.sub(r"^- (shelf|aliases|unnumbered): .*$", "", text, flags=re.M).split())


@pytest.mark.parametrize("shelf", SIZES)
def test_shelves_do_not_grow(shelf):
    pages, most, (goal_pages, goal) = SIZES[shelf]
    found = [words(path) for path in NOTEBOOKS if shelf_of(path) == shelf]
    told = f"{shelf}: {len(found)} pages (goal {goal_pages}), {sum(found)} words (goal {goal})"
    assert len(found) <= pages and sum(found) <= most, told


def test_figures_have_captions_and_alternative_texts():
    for path in NOTEBOOKS:
        for cell in cells_of(path, "code"):
            text = source(cell)
            if re.search(r"^#\|\s*label:\s*fig-", text, re.M):
                place = f"{name_of(path)}: {text[:60]}"
                for key in ("fig-cap", "fig-alt"):
                    assert len(re.findall(rf'^#\| {key}: ".+"$', text, re.M)) == 1, place
                assert cell["outputs"] or "eval: false" in text, place


def test_small_pictures_are_the_figures_of_their_notebooks():
    gallery = "\n".join(sources(notebook("gallery")))
    for name, picture in pictures().items():
        assert (NBS / "images" / name).read_bytes() == picture, f"run tools/thumbnails.py: {name}"
        assert name in FRONT or f"(../images/{name})" in gallery, name


MAP = "\n".join(sources(notebook("statement_map"), "markdown"))


@pytest.mark.parametrize("paper", re.findall(r"\{#sec-map-([\w-]+)\}-->\n(?=[^#]*\n\|)", MAP))
def test_every_row_of_the_statement_map_resolves(paper):
    known = {label for path in NOTEBOOKS for label in labels(path)}
    table = re.search(rf"\{{#sec-map-{paper}\}}-->\n([^#]*)", MAP)[1]
    rows = [line.strip("| ") for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 5
    for row in rows:
        found = re.findall(r"@([a-z]+-[\w-]*\w)", re.split(r"\s*\|\s*", row)[-1])
        assert found and set(found) <= known, row


def test_names_of_the_appendix_of_symbols_exist():
    text = "\n".join(sources(notebook("symbols")))
    found = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)\.([A-Za-z_]+)`", text)
    assert len(found) > 20
    for module, name in found:
        assert hasattr(importlib.import_module(f"idm_nb.{module}"), name), f"{module}.{name}"


def test_every_public_name_has_one_entry_of_the_reference():
    places = site.entries_of_reference()
    for part in ["", *(f".{path.parent.name}" for path in ROOT.glob("idm_nb/*/__init__.py"))]:
        module = importlib.import_module(f"idm_nb{part}")
        assert {name for name in module.__all__ if callable(getattr(module, name))} <= set(places)
    written = ""
    for path in GENERATED:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(path.read_text(), path, "exec"), {})
        written += printed.getvalue()
    assert {path.name.removesuffix(".qmd.py") for path in GENERATED} == {*site.PAGES, "reference"}
    assert all(written.count(f"### `{name}` {{#{name}}}") == 1 for name in places)


def test_no_attribute_is_swallowed_by_the_entry_before_it():
    lines = [
        "a_ : float",
        "    Long text.",
        "b_, c_, ...",
        "    As in `x`.",
        "d : int, e : str, w; f : int",
    ]
    names = [name for name, _ in site.entries_of(lines)]
    assert names == ["a_", "b_, c_, ...", "d", "e", "f"]


def test_home_shows_what_its_script_measured():
    told, page = json.loads((ROOT / "bench" / "home.json").read_text()), HOME.read_text()
    percent = lambda share: f"{100 * share:.0f} %"
    methods = told["methods"]
    for name in [name for name in methods if "weight" not in name]:
        shares = [percent(methods[name][key]) for key in ("same digit and angle", "same digit")]
        row = [name, *shares, f"{methods[name]['error of the angle']:.1f}°"]
        assert f"| {' | '.join(row)} |" in page, row
    best = max(one["same digit and angle"] for name, one in methods.items() if "weight" in name)
    assert f"reaches {percent(best)} at most" in page
    for count in (told["training rows"], told["new rows"]):
        assert re.search(rf"\b{count}\b", page)
    assert str(told["new rows"]) in (ROOT / "README.md").read_text() and told["branches"] == 3


def test_code_of_home_and_readme_runs(tmp_path, monkeypatch, capsys):
    table, _ = demo_table("three-digits", 0)
    some = table.frame[table.frame.original % 12 == 0]
    (tmp_path / "results").mkdir()
    some.to_csv(tmp_path / "results" / "three-digits.csv", index=False)
    some[:3].to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    codes = [re.search(r"```python\n(.*?)```", p.read_text(), re.S)[1] for p in (HOME, README)]
    assert codes[0] == codes[1]
    exec(codes[0], {})
    assert "the map explains" in capsys.readouterr().out
    assert "pictures" in (tmp_path / "report.html").read_text()
    assert len(README.read_text().split()) <= 800


def test_programs_are_told_the_parameters_of_today():
    call = re.search(r"`IteratedDiffusionMap\((.*?)\)`", (NBS / "llms.txt").read_text())[1]
    for name, parameter in inspect.signature(IteratedDiffusionMap).parameters.items():
        written = f"{name}={parameter.default!r}".replace("'", '"')
        assert written in call.split(", ") or name == "verbose", written
