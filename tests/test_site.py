"""What the site is made of: every chapter as nbdev writes it for Quarto, which itself is not needed.

nbdev runs the import cells and the exported cells of all notebooks. It must manage with what `.[dev]` installs, and what it writes must
hold all that the notebooks hold.
"""

import ast
import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from book import NBS, NOTEBOOKS, ROOT, cells_of, name_of, notebook, source, sources
from thumbnails import FRONT, pictures

import idm_nb
from idm_nb import IteratedDiffusionMap
from tools import site

NOT_IN_DEV = (
    "umap kmapper skdim pydiffmap graphtools dask distributed jupyterlab playwright".split()
)
BLOCK = f"""
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_IN_DEV}:
            raise ModuleNotFoundError(f"{{name}} is not among what .[dev] installs", name=name)
sys.meta_path.insert(0, Refused())
"""


def markdown(page):
    "All text of a page: its markdown cells, and outputs that are markdown."
    parts = []
    for cell in page:
        if cell["cell_type"] != "code":
            parts.append(source(cell))
        parts += [
            "".join(o.get("data", {}).get("text/markdown", "")) for o in cell.get("outputs", [])
        ]
    return "\n\n".join(parts)


def prose(text):
    "Markdown without code."
    text = re.sub(r"^(```+).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def front(page):
    return yaml.safe_load(source(page[0]).strip().strip("-"))


def code_of(page):
    return [source(cell) for cell in page if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    "Cells of each chapter as nbdev writes it, by part and chapter."
    folder = tmp_path_factory.mktemp("site")
    for name in ("nbs", "idm_nb", "tools", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("settings.ini", "pyproject.toml", "_quarto.yml"):
        shutil.copy(ROOT / name, folder)
    (folder / "block").mkdir()
    (folder / "block" / "sitecustomize.py").write_text(BLOCK)
    code = "from nbdev.serve import proc_nbs; proc_nbs(n_workers=2)"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (folder / "block", folder))),
    }
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
    written = {
        path.relative_to(folder / "_proc").with_suffix("").as_posix(): cells_of(path)
        for path in (folder / "_proc").glob("*/*.ipynb")
    }
    assert set(written) == set(map(name_of, NOTEBOOKS))
    return written


@pytest.fixture(scope="module")
def addresses(pages):
    "From the address of each page to its name."
    found = {
        posixpath.join(posixpath.dirname(name), front(page)["output-file"]): name
        for name, page in pages.items()
    }
    assert len(found) == len(pages)
    return found


def test_every_page_has_its_title_and_summary(pages):
    for path in NOTEBOOKS:
        lines = sources(path)[0].splitlines()
        title, summary = lines[0].removeprefix("# "), lines[2].removeprefix("> ")
        page = pages[name_of(path)]
        unnumbered = "- unnumbered: true" in lines
        assert front(page)["title"] == (f"# {title} {{.unnumbered}}" if unnumbered else title)
        assert "::: {.summary}" in source(page[1]) and summary in source(page[1]).replace(
            "`](", "`"
        ), name_of(path)


def test_no_text_is_lost(pages):
    plain = lambda text: re.sub(
        r"\[(`[^`]+`)\]\([^)]*\)", r"\1", text
    )  # names of functions are linked
    for path in NOTEBOOKS:
        written = plain(markdown(pages[name_of(path)]))
        for text in sources(path, "markdown")[1:]:
            assert plain(text).strip() in written, f"{name_of(path)}: {text[:60]!r}"


def test_every_figure_keeps_caption_and_description(pages):
    number = 0
    for path in NOTEBOOKS:
        written = code_of(pages[name_of(path)])
        for text in sources(path, "code"):
            if label := re.search(r"^#\|\s*label: (fig-\S+)", text, flags=re.M):
                (place,) = [
                    code
                    for code in written
                    if re.search(rf"^#\| label: {label[1]}$", code, flags=re.M)
                ]
                for line in re.findall(r"^#\| fig-(?:cap|alt): .*$", text, flags=re.M):
                    assert re.search(r'[.?!]"$', line) and "{#" not in line, (
                        f"{name_of(path)}: {line}"
                    )
                    assert line in place.splitlines(), f"{name_of(path)}: {line}"
                number += 1
    assert number > 70


def test_pictures_come_early(pages):
    leads = [
        path for path in NOTEBOOKS if any("#| lead\n" in text for text in sources(path, "code"))
    ]
    assert len(leads) > 15
    for path in leads:
        page = pages[name_of(path)]
        drawn = [
            k
            for k, cell in enumerate(page)
            if any("image/png" in o.get("data", {}) for o in cell.get("outputs", []))
        ]
        assert drawn[0] == 3, name_of(path)  # after front matter, summary and opening
        (label,) = re.findall(r"\(#(fig-\S+?)\)", source(page[3]))
        assert any(f"#| label: {label}\n" in source(page[k]) for k in drawn[1:]), name_of(path)


def test_source_of_the_package_is_shown_folded(pages):
    for path in NOTEBOOKS:
        exported = [
            text for text in sources(path, "code") if re.search(r"^#\| exporti?$", text, flags=re.M)
        ]
        names = [
            node.name for text in exported for node in ast.parse(text).body if hasattr(node, "name")
        ]
        text = markdown(pages[name_of(path)])
        shown = re.findall(r"<summary>Source of (.+)</summary>", text)
        assert re.findall(r"<code>(\w+)</code>", " ".join(shown)) == names, name_of(path)
        assert text.count("<details") == text.count("</details>") >= len(shown)


def test_start_and_gallery_are_run():
    for path in [*NBS.glob("00_start/*.ipynb"), notebook("gallery")]:
        code = "\n".join(sources(path, "code"))
        assert not re.search(r"^#\|\s*(slow|notest|eval)", code, flags=re.M), (
            path.name
        )  # the tests run all of it


def test_references_and_links_lead_somewhere(pages):
    labels, anchors = set(), {}
    for name, page in pages.items():
        text = markdown(page)
        own = set(re.findall(r"\{#([\w.-]+)", text))
        headings = re.findall(r"^#+ ([\w -]+)$", text, flags=re.M)
        own |= {heading.strip().lower().replace(" ", "-") for heading in headings}
        own |= set(re.findall(r"^#\|\s*label: (\S+)", "\n".join(code_of(page)), flags=re.M))
        anchors[f"{name}.ipynb"] = own
        labels |= own
    labels |= set(re.findall(r"^@\w+\{(\w+),", (NBS / "references.bib").read_text(), flags=re.M))
    for name, page in pages.items():
        told = prose(markdown(page)) + "\n".join(
            re.findall(r"^#\| fig-cap: .*$", "\n".join(code_of(page)), flags=re.M)
        )
        for reference in re.findall(r"(?<![\w`/])@([a-zA-Z][\w-]*\w)", told):
            assert reference in labels, f"{name}: @{reference}"
        for target in re.findall(r"\]\(([^)\s]+)\)", told):
            if "//" in target:
                continue
            file, _, anchor = target.partition("#")
            file = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
                if file
                else f"{name}.ipynb"
            )
            assert (NBS / file).exists(), f"{name}: {target}"
            assert not anchor or anchor in anchors[file], f"{name}: {target}"


def test_front_page_and_list_for_programs_lead_somewhere(pages, addresses):
    front_page, programs = (NBS / name for name in ("index.qmd", "llms.txt"))
    targets = re.findall(r"\]\(([^)\s]+)\)", front_page.read_text())
    assert targets and all((NBS / target.partition("#")[0]).exists() for target in targets)
    targets = re.findall(r"\]\((\S+)\)", programs.read_text())
    assert targets and set(targets) <= set(addresses)
    call = re.search(r"`IteratedDiffusionMap\((.*?)\)`", programs.read_text())[1]
    for name, parameter in inspect.signature(IteratedDiffusionMap).parameters.items():
        written = f"{name}={parameter.default!r}".replace("'", '"')
        assert written in call.split(", ") or name == "verbose", written


def test_links_of_the_readme_are_absolute_and_lead_somewhere(addresses):
    text = (ROOT / "README.md").read_text()
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    here = "https://idm-nb.github.io/idm_nb/"
    raw = "https://raw.githubusercontent.com/idm-nb/idm_nb/main/"
    assert sum(target.startswith(here) for target in targets) > 30
    for target in targets:
        assert target.startswith("https://"), target
        if target.startswith(here):
            page = target.removeprefix(here).partition("#")[0]
            assert page in ("", *addresses), target
        if target.startswith(raw):
            assert (ROOT / target.removeprefix(raw)).exists(), target


def test_small_pictures_are_the_figures_of_their_notebooks():
    told = "\n".join(sources(notebook("gallery")))
    for name, picture in pictures().items():
        assert (NBS / "images" / name).read_bytes() == picture, f"run tools/thumbnails.py: {name}"
        assert name in FRONT or f"(../images/{name})" in told, name


def test_pages_hold_nothing_of_this_machine_or_of_the_tools(pages):
    for name, page in pages.items():
        assert not re.search(r"/home/\w|/root/|/tmp/\w|/Users/|site-packages", json.dumps(page)), (
            name
        )
        for cell in page:
            for output in cell.get("outputs", []):
                shown = "".join(output.get("data", {}).get("text/markdown", ""))
                assert "NoneType" not in shown and "Call self as" not in shown, name


def test_reference_names_everything_public(pages):
    text = markdown(pages[name_of(notebook("reference"))])
    for name in site.entries_of_reference():
        assert f"{{#{name}}}" in text, name
    assert set(idm_nb.__all__) <= set(site.entries_of_reference())
    for method in ("fit", "transform", "predict", "score", "save"):
        assert f"{{#IteratedDiffusionMap.{method} " in text, method


DOC = """One line.

Parameters
----------
X : (N, m) array, data
    Rows are points.
a_ : int, one; b_ : float, another

Returns
-------
self
"""


def test_docstrings_become_tables():
    text, parts = site.sections_of(DOC)
    assert text == "One line." and list(parts) == ["Parameters", "Returns"]
    entries = [
        ("X", "(N, m) array, data. Rows are points."),
        ("a_", "int, one"),
        ("b_", "float, another"),
    ]
    assert site.entries_of(parts["Parameters"]) == entries
    assert site.entries_of(parts["Returns"]) == [("", "self")]
    table = site.section_markdown("Parameters", parts["Parameters"])
    assert table.split("\n")[2] == "| `X` | (N, m) array, data. Rows are points. |"
    assert site.doc_markdown(site.sections_of).startswith("Text before")


def test_signatures_are_written_as_calls():
    call = site.signature_of("fit", IteratedDiffusionMap.fit)
    assert call.startswith("fit(X, y") and "self" not in call
    lines = site.signature_of("IteratedDiffusionMap", IteratedDiffusionMap).splitlines()
    assert len(lines) > 2 and max(map(len, lines)) < 89


def test_names_between_backticks_are_linked():
    assert site.linked("see `KernelSum`.") == f"see [`KernelSum`]({site.REFERENCE}#KernelSum)."
    for text in (
        "`no_such_name`",
        "# `KernelSum`",
        "```\n`KernelSum`\n```",
        "[`KernelSum`](x.html)",
        "| `KernelSum` |",
    ):
        assert site.linked(text) == text


def test_long_lines_are_broken_and_tables_are_not():
    sentence, table = "word " * 40, "name" + " " * 30 + "number " * 20
    assert max(map(len, site.broken_lines(sentence).split("\n"))) <= site.LONGEST
    assert site.broken_lines(table) == table
