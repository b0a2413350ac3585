"""What is done to the notebooks on their way to the site, beside nbdev's own processing: `procs` in `settings.ini` names `SitePage`.

The reference is written from the docstrings; each chapter shows its summary under its title, its first picture under its opening, and
the source of the package folded.
"""

import ast
import inspect
import re
import struct
import textwrap
from base64 import b64decode
from copy import deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path

import idm_nb


def sections_of(doc):
    "Text before the first section of a docstring, and a dict from section to its lines."
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.M)
    return parts[0].strip(), {
        k: v.strip("\n").split("\n") for k, v in zip(parts[1::2], parts[2::2])
    }


ENTRY = re.compile(r"[\w*]+(?:, [\w*.]+)*(?: : |, \.\.\.$)|[\w*]+(?: \w+)* : ")  # begins an entry


def entries_of(lines):
    "Pairs `(names, meaning)` of the lines of a section; names are empty where none is given."
    whole, first = [], False
    for line in filter(str.strip, lines):
        if whole and (line.startswith(" ") or " : " in whole[-1] and not ENTRY.match(line)):
            begins = line.strip()[0].isupper() or line.strip()[0] == whole[-1][-1] == '"'
            sentence = first and begins and whole[-1][-1] not in ".:;,"
            joint = " : " if whole[-1].endswith(", ...") else ". " if sentence else " "
            whole[-1] += joint + line.strip()
            first = False
        else:
            names, colon, rest = line.strip().partition(" : ")
            one, *others = re.split(r"[;,] (?=\w[\w ]* : )", rest)
            whole += [names + colon + one, *others]
            first = True
    return [tuple(entry.split(" : ", 1)) if " : " in entry else ("", entry) for entry in whole]


def section_markdown(title, lines):
    "Markdown of one section of a docstring."
    if title == "Examples":
        return "\n".join([f"**{title}**", "", "```python", *lines, "```"])
    entries = entries_of(lines)
    if not any(names for names, _ in entries):
        return f"**{title}.** " + " ".join(meaning for _, meaning in entries)
    names = lambda text: ", ".join(f"`{name.strip()}`" for name in text.split(",") if name.strip())
    rows = [
        f"| {names(text)} | {meaning.replace('|', chr(92) + '|')} |" for text, meaning in entries
    ]
    return "\n".join([f"| {title} | |", "|:----|:---------------|", *rows])


def doc_markdown(found):
    "Markdown of the docstring of an object."
    text, parts = sections_of(inspect.getdoc(found) or "")
    return "\n\n".join([text, *(section_markdown(*part) for part in parts.items())])


CODE = "https://github.com/idm-nb/idm_nb/blob/main/"
PAGES = {  # page of the reference: the package itself with its two estimators, and parts with all their other names
    "estimators_and_tables": ("", "tables", "core"),
    "map_and_estimates": ("idm", "branches", "regression", "flow"),
    "diffusion_and_relatives": "datasets diffusion kernels derivatives study relatives".split(),
}
FIRST = ("IteratedDiffusionMap", "TableMap")  # what most users need
NAME = re.compile(r"(?<!\[)`(\w+)`(?!\])")  # between backticks, and not a link yet
FROM_SKLEARN = ("fit_transform", "score")


def methods_of(kind):
    "Public methods and properties of a class that are documented: its own first, in the order of their definition."
    found = {}
    for name, member in inspect.getmembers(kind):
        member = getattr(member, "fget", member)  # a property by its function
        home = getattr(member, "__module__", None) or ""
        own = home.startswith("idm_nb") or name in FROM_SKLEARN
        if not name.startswith("_") and inspect.isfunction(member) and own and member.__doc__:
            found[name] = member
    place = lambda function: inspect.unwrap(function).__code__.co_firstlineno
    far = lambda name: (name not in vars(kind), found[name].__module__ != kind.__module__)
    order = lambda name: (*far(name), place(found[name]))
    return {name: found[name] for name in sorted(found, key=order)}


def signature_of(name, found):
    "A call as it is written: no types, no `self`, at most 88 characters a line."
    arguments = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    words, star = [], False
    for p in arguments:
        if p.kind == p.KEYWORD_ONLY and not star:
            words, star = [*words, "*"], True
        default = getattr(p.default, "__name__", None) or repr(p.default)
        words.append(
            str(p.replace(annotation=p.empty, default=p.empty))
            + ("" if p.default is p.empty else f"={default}")
        )
    call = f"{name}({', '.join(words)})"
    if len(call) < 89:
        return call
    lines = [""]
    for word in words:
        lines = [*lines, ""] if len(lines[-1]) + len(word) > 80 else lines
        lines[-1] += f"{word}, "
    return f"{name}(\n" + "\n".join("    " + line.rstrip() for line in lines) + "\n)"


def source_links(found):
    "Links to the chapter and to the lines in which an object is defined."
    lines, start = inspect.getsourcelines(found)
    module = inspect.getmodule(found)
    chapter = re.search(r"nbs/(\S+\.ipynb)", inspect.getsource(module))
    file = f"{CODE}{module.__name__.replace('.', '/')}.py#L{max(start, 1)}"
    if module.__name__ == "idm_nb":
        file = f"{CODE}idm_nb/__init__.py#L{start}"
    return " · ".join([*([f"[chapter](../{chapter[1]})"] if chapter else []), f"[source]({file})"])


def reference(found, name=None):
    """The entry of the reference for a class or a function, as Markdown.

    Parameters
    ----------
    found : class or function with a docstring
    name : str, default None: its own

    Returns
    -------
    str

    Examples
    --------
    >>> from idm_nb.diffusion import neighbor_recall
    >>> reference(neighbor_recall).splitlines()[0]
    '### `neighbor_recall` {#neighbor_recall}'
    """
    name = name or found.__name__
    call = f"```python\n{signature_of(name, found)}\n```"
    parts = [f"### `{name}` {{#{name}}}", call, source_links(found), doc_markdown(found)]
    if inspect.isclass(found):
        for method, function in methods_of(found).items():
            title = f"#### `{name}.{method}` {{#{name}.{method} .unnumbered}}"
            is_value = isinstance(inspect.getattr_static(found, method), property)
            call = method if is_value else signature_of(method, function)
            if function.__module__.startswith("idm_nb"):
                text = doc_markdown(function)
            else:  # of scikit-learn, whose documentation says more
                text = inspect.getdoc(function).split("\n\n")[0] + " As in scikit-learn."
                text = re.sub(r":\w+:`([^<`]*?)\s*(?:<[^>]*>)?`", r"\1", text)
            parts += [title, f"```python\n{call}\n```", text]
    return "\n\n".join(parts)


@cache
def names_of_pages():
    "From each page of the reference to pairs of a module and the names that it explains, each once."
    found, told = {}, set()
    for page, subjects in PAGES.items():
        found[page] = []
        for subject in subjects:
            part = import_module(f"idm_nb.{subject}".rstrip("."))
            names = [name for name in part.__all__ if callable(getattr(part, name))]
            names = [name for name in (names if subject else FIRST) if name not in told]
            told |= set(names)
            found[page].append((part, names))
    return found


@cache
def entries_of_reference():
    "From each public name to its place in the reference."
    return {
        name: f"../reference/{page}.qmd#{name}"
        for page, groups in names_of_pages().items()
        for _, names in groups
        for name in names
    }


def summary_of(text):
    "Markdown of the summary that stands under the title of a page."
    return f"::: {{.summary}}\n{text}\n:::"


def reference_page(page, summary):
    "Markdown of a page of the reference: its summary, and the entries of all its names."
    parts = [summary_of(summary)]
    for part, names in names_of_pages()[page]:
        parts += [f"## {part.__name__}"]
        parts += [f"`from {part.__name__} import {', '.join(names)}`"]
        parts += [reference(getattr(part, name), name) for name in names]
    return linked("\n\n".join(parts))


def reference_index():
    "Markdown of the list of all public names: what most users need first, then each page."
    sentence = lambda part, name: doc_markdown(getattr(part, name)).split("\n")[0].strip()
    places, parts = entries_of_reference(), sum(names_of_pages().values(), [])
    front = sorted(idm_nb.__all__, key=lambda name: (name not in FIRST, name))
    groups = [(idm_nb, front), *(group for group in parts if group[0] is not idm_nb)]
    lines = [
        summary_of("Every public name of the package in one sentence, with a link to its entry.")
    ]
    lines += [
        "An entry has the call, parameters, attributes and methods, an example that runs, the chapter that derives it, and its source. "
        "[What always holds](promises.ipynb) has a page of its own."
    ]
    for part, names in groups:
        rows = [f"| [`{name}`]({places[name]}) | {sentence(part, name)} |" for name in names]
        lines += [
            f"## {part.__name__}",
            "\n".join(["| name | what |", "|:-----|:---------|", *rows]),
        ]
    return "\n\n".join(lines)


def linked(text):
    "Markdown in which a public name between backticks is a link to its entry in the reference."
    entries, fence, lines = entries_of_reference(), False, []
    for line in text.split("\n"):
        fence ^= line.startswith("```")
        if not fence and not line.startswith(("#", "    ", "|", "<")):
            line = NAME.sub(
                lambda m: f"[{m[0]}]({entries[m[1]]})" if m[1] in entries else m[0], line
            )
        lines.append(line)
    return "\n".join(lines)


# a name with a link, or names in parentheses, for who reads without Quarto
NAMED = re.compile(
    r"\[[^][]*\]\([^()]*\)<!--(@[\w-]+)-->|\((?:[^()]|\([^()]*\))*\)<!--(\[[^]]*@[^]]*\])-->"
)
COMMENT = re.compile(
    r"<!--((?:\(@|\{#|:::).*?)-->"
)  # a label, a fence or a reference for Quarto alone


def for_quarto(text):
    """Markdown in which labels, fences and references no longer stand in comments.

    Examples
    --------
    >>> for_quarto("By [the limit](11_flow.ipynb)<!--@thm-limit--> it shrinks<!--(@eq-a)-->. <!--{#eq-b}-->")
    'By @thm-limit it shrinks (@eq-a). {#eq-b}'
    >>> for_quarto("A forest ([Breiman](../references.bib))<!--[@breiman2001, page 5]--> suits.")
    'A forest [@breiman2001, page 5] suits.'
    """
    text = COMMENT.sub(
        lambda m: " " * (m[1][0] == "(") + m[1], NAMED.sub(lambda m: m[1] or m[2], text)
    )
    return re.sub(r"^#### Theorem: ", "#### ", text, flags=re.M)


def code_lines(source):
    "Lines of a cell that are neither empty nor an option."
    return [line for line in source.split("\n") if line.strip() and not line.startswith("#|")]


def folded_as(cell):
    "What the code of a cell is called where it is folded; None if it stays open."
    lines = code_lines(cell.source)
    if not lines or "#| code-fold" in cell.source or "#| echo" in cell.source:
        return None
    if re.search(r"^#\| label: fig-", cell.source, re.M):
        return "Code of the figure"
    statements = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    if re.fullmatch(r"(?:\s*(?:(?:from|import) [^(\n]*|from [^(\n]*\([^)]*\))\s*)+", statements):
        return "Imports"
    if not cell.get("outputs") and "assert" not in cell.source and len(lines) > 5:
        return "Preparation"
    return "Code" if len(lines) > 15 else None


def text_cell(text):
    from execnb.nbio import mk_cell  # nbdev, which runs this, brings it

    return mk_cell(text, "markdown")


def folded_source(cell):
    "A cell of Markdown with the source of an exported cell; None if it defines no name. `#| open` unfolds it."
    is_named = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in ast.parse(cell.source).body if isinstance(node, is_named)]
    if not names:
        return None
    title = "Source of " + ", ".join(f"<code>{name}</code>" for name in names)
    text = f"```python\n{cell.source.strip()}\n```"
    opened = " open" if "open" in cell.directives_ else ""
    text = (
        f'<details class="code-fold"{opened}>\n<summary>{title}</summary>\n\n{text}\n\n</details>'
    )
    return text_cell(text)


LONGEST = 96  # signs in a line of output that the column shows


def broken_lines(text):
    "Printed text with its long sentences broken; rows of a table, with gaps in them, stay whole."
    lines = text.split("\n")
    long = [len(line) > LONGEST and "   " not in line.strip() for line in lines]
    return "\n".join(
        textwrap.fill(line, LONGEST) if is_long else line for line, is_long in zip(lines, long)
    )


def width_of(cell):
    "Width in pixels of the widest picture among the outputs of a cell; 0 without one."
    found = ["".join(o.get("data", {}).get("image/png", "")) for o in cell.get("outputs", [])]
    return max(
        (struct.unpack(">I", b64decode(png[:32])[16:20])[0] for png in found if png), default=0
    )


def lead_picture(cell):
    "A copy of the cell of a figure that only shows the picture, with a link to its place."
    (label,) = re.findall(r"^#\| label: (\S+)$", cell.source, re.M)
    told = re.findall(r"^#\| fig-(?:cap|alt): .*$", cell.source, re.M)
    told[0] = told[0].rstrip().removesuffix('"') + f' ([below](#{label}))"'
    copy = deepcopy(cell)
    copy.id = "lead"
    copy.source = "\n".join(["#| echo: false", *told, "0"])
    copy.outputs = [o for o in cell.outputs if "image/png" in o.get("data", {})][:1]
    return copy


def live_links(path):
    "Links that open a notebook, at `path`, where its cells run."
    name = "/".join(path.parts[-2:])
    colab = f"https://colab.research.google.com/github/idm-nb/idm_nb/blob/main/nbs/{name}"
    binder = f"https://mybinder.org/v2/gh/idm-nb/idm_nb/main?labpath=nbs/{name}"
    return f"Run this page in [Colab]({colab}) or [Binder]({binder})."


class SitePage:
    """What is done to a chapter after nbdev's own processing: `procs` in `settings.ini` names it.

    Parameters
    ----------
    nb : notebook that nbdev processes
    """

    def __init__(self, nb):
        self.nb, self.lead = nb, None
        cells = []
        for cell in nb.cells:
            cells.append(cell)
            hidden = {"export", "exporti"} & (getattr(cell, "directives_", None) or {}).keys()
            if hidden and (source := folded_source(cell)):
                cells.append(source)
        for k, cell in enumerate(cells):
            cell.idx_ = k
        nb.cells = cells

    def begin(self):
        "Put the summary under the title: the second cell is a comment of nbdev."
        front = getattr(self.nb, "frontmatter_", {})
        if front.get(
            "unnumbered"
        ):  # Quarto reads the class from a title that begins like a heading
            title = f'title: "# {front["title"]} {{.unnumbered}}"'
            self.nb.cells[0].source = re.sub(
                r"^title: .*$", title, self.nb.cells[0].source, flags=re.M
            )
        summary = front.get("description")
        if summary:
            self.nb.cells[1].source += f"\n\n{summary_of(summary)}"
        if front.get("shelf") in ("guide", "method"):
            self.nb.cells[1].source += f"\n\n{live_links(Path(self.nb.path_))}"

    def _lead_(self, cell):
        self.lead = cell

    def __call__(self, cell):
        if cell.cell_type != "code":
            cell.source = linked(for_quarto(cell.source))
        else:
            name = folded_as(cell)
            if name:
                cell.source = f'#| code-fold: true\n#| code-summary: "{name}"\n' + cell.source
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = broken_lines("".join(output["text"])).splitlines(True)
            text = "".join(output.get("data", {}).get("text/markdown", ""))
            if text:
                output["data"]["text/markdown"] = linked(text).splitlines(True)

    def end(self):
        "Put the picture of the chapter under its opening, the first text after the summary."
        if self.lead is not None:
            cells = self.nb.cells
            opening = next(k for k, c in enumerate(cells[2:], 2) if c.cell_type == "markdown")
            cells.insert(opening + 1, lead_picture(self.lead))
