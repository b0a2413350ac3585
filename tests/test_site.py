"""What the site is made of: every chapter as nbdev writes it for Quarto, which itself is not needed.

nbdev runs the import cells and the exported cells of all notebooks. It must manage with what `.[dev]` installs, and
what it writes must hold all that the notebooks hold.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import yaml

from idm_nb.site import joined

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "nbs").glob("*.ipynb"))
SITE = "https://idm-nb.github.io/idm_nb/"
NOT_IN_DEV = ["umap", "kmapper", "skdim", "pydiffmap", "graphtools", "dask", "distributed", "jupyterlab", "playwright"]
BLOCK = f"""
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_IN_DEV}:
            raise ModuleNotFoundError(f"{{name}} is not among what .[dev] installs", name=name)
sys.meta_path.insert(0, Refused())
"""


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell):
    return "".join(cell["source"])


def markdown(page):
    "All text of a page: its markdown cells, and outputs that are markdown."
    parts = []
    for cell in page:
        if cell["cell_type"] != "code":
            parts.append(source(cell))
        parts += ["".join(o.get("data", {}).get("text/markdown", "")) for o in cell.get("outputs", [])]
    return "\n\n".join(parts)


def prose(text):
    "Markdown without code."
    text = re.sub(r"^(```+).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def front(page):
    return yaml.safe_load(source(page[0]).strip().strip("-"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    "Cells of each chapter as nbdev writes it, from notebook name."
    folder = tmp_path_factory.mktemp("site")
    for name in ("nbs", "idm_nb"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("settings.ini", "pyproject.toml", "_quarto.yml"):
        shutil.copy(ROOT / name, folder)
    (folder / "block").mkdir()
    (folder / "block" / "sitecustomize.py").write_text(BLOCK)
    code = "from nbdev.serve import proc_nbs; proc_nbs(n_workers=2)"
    path = os.pathsep.join(map(str, (folder / "block", folder)))
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    written = {p.name: cells(p) for p in (folder / "_proc").glob("*.ipynb")}
    assert set(written) == {p.name for p in NOTEBOOKS}
    return written


def test_every_page_has_its_own_address_and_summary(pages):
    addresses = [front(page)["output-file"] for page in pages.values()]
    assert len(addresses) == len(set(addresses)), [a for a in addresses if addresses.count(a) > 1]
    for path in NOTEBOOKS:
        first = source(cells(path)[0])
        title, summary = re.fullmatch(r"# (.+)\n\n> (.+)", first).groups()
        page = pages[path.name]
        assert front(page)["title"] == title, path.name
        assert f"::: {{.summary}}\n{summary.replace(SITE, '')}\n:::" in source(page[1]), path.name


def test_no_text_is_lost(pages):
    plain = lambda text: re.sub(r"\[(`[^`]+`)\]\([^)]*\)", r"\1", text)  # nbdev links names of functions
    for path in NOTEBOOKS:
        written = plain(markdown(pages[path.name]))
        for cell in cells(path)[1:]:
            if cell["cell_type"] == "markdown":
                assert plain(source(cell)).strip() in written, f"{path.name}: {source(cell)[:60]!r}"


def test_every_figure_keeps_caption_and_description(pages):
    number = 0
    for path in NOTEBOOKS:
        written = [source(cell) for cell in pages[path.name] if cell["cell_type"] == "code"]
        for cell in cells(path):
            if label := re.search(r"^#\|\s*label: (fig-\S+)", source(cell), flags=re.M):
                lines = re.findall(r'^#\|\s*(fig-(?:cap|alt)): ("?)(.+)\2$', joined(source(cell)), flags=re.M)
                assert [kind for kind, _, _ in lines] == ["fig-cap", "fig-alt"], f"{path.name}: {label[1]}"
                place, = [text for text in written if re.search(rf"^#\| label: {label[1]}$", text, flags=re.M)]
                for kind, quote, text in lines:
                    assert re.search(r"[.?!]$", text) and "{#" not in text, f"{path.name}: {text}"
                    assert f"#| {kind}: {quote}{text}{quote}\n" in place, f"{path.name}: {text}"
                number += 1
    assert number > 70


def test_captions_of_several_lines_are_joined():
    cell = '#| label: fig-a\n#| fig-cap: "One,"\n#| fig-cap: "two,"\n#| fig-cap: "three."\n#| fig-alt: "Four."\nx = 1\n'
    assert joined(cell) == '#| label: fig-a\n#| fig-cap: "One, two, three."\n#| fig-alt: "Four."\nx = 1\n'


def test_chapters_open_with_a_question_and_what_one_can_do_after_it(pages):
    for path in NOTEBOOKS:
        if path.name < "3":  # the chapters; what comes after them are appendices and short pages
            told = source(cells(path)[1])
            assert re.fullmatch(r"[^?\n]+\? After this chapter you [^\n]+\.", told), path.name
            texts = [source(cell) for cell in pages[path.name] if cell["cell_type"] == "markdown"]
            assert texts[1] == told, path.name


def test_pictures_come_early_and_fit(pages):
    from idm_nb.site import WIDEST, width_of

    leads = [path.name for path in NOTEBOOKS if "#| lead\n" in "".join(map(source, cells(path)))]
    assert len(leads) > 15
    for name in leads:
        place = [k for k, cell in enumerate(pages[name]) if width_of(cell)]
        assert place[0] == 3, name  # after front matter, summary and opening
        label, = re.findall(r"\(@(fig-\S+)\)\"$", source(pages[name][3]), flags=re.M)
        assert any(f"#| label: {label}\n" in source(pages[name][k]) for k in place[1:]), name
    for name, page in pages.items():
        for cell in page:
            wide = bool(re.search(r"^#\| column: page$", source(cell), flags=re.M)) and cell["cell_type"] == "code"
            assert wide == (width_of(cell) > WIDEST), f"{name}: {source(cell)[:80]}"


def test_source_of_the_package_is_shown_folded(pages):
    import ast

    for path in NOTEBOOKS:
        names = [node.name for cell in cells(path) if re.search(r"^#\| exporti?$", source(cell), flags=re.M)
                 for node in ast.parse(source(cell)).body if hasattr(node, "name")]  # fmt: skip
        text = markdown(pages[path.name])
        shown = re.findall(r"<summary>Source of (.+)</summary>", text)
        assert re.findall(r"<code>(\w+)</code>", " ".join(shown)) == names, path.name
        assert text.count("<details") == text.count("</details>") >= len(shown)


def test_gallery_and_start_run_and_half_of_the_gallery_is_measured():
    gallery = sorted((ROOT / "nbs").glob("6?_*.ipynb"))
    measured = [path for path in gallery if "> Measured:" in source(cells(path)[0])]
    assert len(gallery) >= 10 and 2 * len(measured) >= len(gallery)
    for path in [*gallery, *(ROOT / "nbs").glob("4?_*.ipynb")]:
        code = "\n".join(source(cell) for cell in cells(path) if cell["cell_type"] == "code")
        assert not re.search(r"^#\|\s*(slow|notest|eval)", code, flags=re.M), path.name  # the tests run all of it


def test_references_and_links_lead_somewhere(pages):
    labels, anchors = set(), {}
    for name, page in pages.items():
        text = markdown(page)
        own = set(re.findall(r"\{#([\w.-]+)", text))
        own |= {m.strip().lower().replace(" ", "-") for m in re.findall(r"^#+ ([\w -]+)$", text, flags=re.M)}
        anchors[front(page)["output-file"]] = own
        code = "\n".join(source(cell) for cell in page if cell["cell_type"] == "code")
        labels |= own | set(re.findall(r"^#\|\s*label: (\S+)", code, flags=re.M))
    labels |= set(re.findall(r"^@\w+\{(\w+),", (ROOT / "nbs" / "references.bib").read_text(), flags=re.M))
    for name, page in pages.items():
        text = prose(markdown(page))
        for reference in re.findall(r"(?<![\w`/])@([a-zA-Z][\w-]*\w)", text):
            assert reference in labels, f"{name}: @{reference}"
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            page_of, _, anchor = target.partition("#")
            if page_of.endswith(".html") and "//" not in page_of:
                assert page_of in anchors and (not anchor or anchor in anchors[page_of]), f"{name}: {target}"
            elif "//" not in target and page_of:
                assert (ROOT / "nbs" / page_of).exists(), f"{name}: {target}"
            elif not page_of:
                assert anchor in anchors[front(page)["output-file"]], f"{name}: {target}"


def test_front_page_gallery_and_list_for_programs_lead_somewhere(pages):
    from idm_nb import IteratedDiffusionMap

    addresses = {front(page)["output-file"] for page in pages.values()} | {"gallery.html"}
    for name in ("index.qmd", "gallery.qmd"):
        targets = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "nbs" / name).read_text())
        assert targets and all((ROOT / "nbs" / target.partition("#")[0]).exists() for target in targets), name
    targets = re.findall(r"\]\((\S+)\)", (ROOT / "nbs" / "llms.txt").read_text())
    assert targets and set(targets) <= addresses
    call = re.search(r"`IteratedDiffusionMap\((.*?)\)`", (ROOT / "nbs" / "llms.txt").read_text())[1]
    for name, parameter in inspect.signature(IteratedDiffusionMap).parameters.items():
        written = f"{name}={parameter.default!r}".replace("'", '"')
        assert written in call.split(", ") or name == "verbose", written
    near = (ROOT / "nbs" / "index.qmd").read_text()  # one click from the front page
    for page in ("50_reference.ipynb#IteratedDiffusionMap", "41_your_own_table.ipynb", "43_when_not_to_use_it.ipynb"):
        assert f"]({page})" in near, page


def test_small_pictures_are_the_figures_of_their_notebooks():
    sys.path.insert(0, str(ROOT / "tools"))
    from thumbnails import first_figure, shown

    gallery = (ROOT / "nbs" / "gallery.qmd").read_text()
    assert len(shown()) > 6
    for path in shown():
        picture = ROOT / "nbs" / "images" / f"{path.stem}.png"
        assert picture.read_bytes() == first_figure(path), f"run tools/thumbnails.py: {path.name}"
        assert path.stem.startswith("40") or f"(images/{path.stem}.png)" in gallery, path.name


def test_stamps_of_slow_outputs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import refresh

    flow = refresh.modules_of("from idm_nb import feature_example\nfrom idm_nb.flow import ClosedFlow")
    assert {"examples", "manifolds", "flow"} <= set(flow) and "explorer" not in flow
    cells = [dict(cell_type="code", source="from idm_nb.manifolds import Torus")]
    before, code = refresh.stamp(cells), refresh.code_of("manifolds")
    assert refresh.stamp(cells) == before
    monkeypatch.setattr(refresh, "code_of", lambda module: (code[0] + "pass", code[1]))
    assert refresh.stamp(cells) != before
    monkeypatch.undo()
    found = [f"{path.name}: {line}" for path in NOTEBOOKS for line in refresh.stale(path)]
    if found:  # computed with other code: nothing is wrong, but the pictures may be of yesterday
        warnings.warn("tools/refresh.py --slow would renew:\n" + "\n".join(found), stacklevel=1)


def test_prose_names_chapters(pages):
    for name, page in pages.items():  # the numbers of files are not those that a reader sees
        assert not re.search(r"\b[Cc]hapters? \d", prose(markdown(page))), name


def test_pages_hold_nothing_of_this_machine_or_of_the_tools(pages):
    for name, page in pages.items():
        text = json.dumps([{**c, "outputs": [o for o in c.get("outputs", [])]} for c in page])
        assert not re.search(r"/home/\w|/root/|/tmp/\w|/Users/|site-packages", text), name
        for cell in page:
            for output in cell.get("outputs", []):
                shown = "".join(output.get("data", {}).get("text/markdown", ""))
                assert "fmt:" not in shown and "NoneType" not in shown and "Call self as" not in shown, name


def test_reference_names_everything_public(pages):
    import idm_nb

    text = markdown(pages["50_reference.ipynb"])
    for name in idm_nb.__all__:
        assert f"{{#{name}}}" in text, name
    for method in ("fit", "transform", "predict", "score", "save"):
        assert f"{{#IteratedDiffusionMap.{method} " in text, method
