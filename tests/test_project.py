"""The repository agrees with itself: notebooks, modules, configuration and versions; and code keeps the rules of the house."""

import ast
import configparser
import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from book import MODULES, NOTEBOOKS, ROOT, module_name, name_of, sources
from dependencies import Uses, imports
from renumber import places

PARTS = sorted(path.parent.name for path in (ROOT / "idm_nb").glob("*/__init__.py"))

SETTERS = {"__call__: options.name"}  # argparse asks its actions for it


def settings():
    config = configparser.ConfigParser(delimiters=["="])
    config.read(ROOT / "settings.ini")
    return config["DEFAULT"]


def pyproject():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib needs Python 3.11")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def exported(folder):
    "Names of the exported modules below a folder."
    paths = (path.relative_to(folder) for path in (folder / "idm_nb").glob("*/*.py"))
    return sorted(path.as_posix() for path in paths if path.name != "__init__.py")


def test_modules_are_what_the_notebooks_export(tmp_path):
    for name in ("nbs", "idm_nb"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "settings.ini", tmp_path)
    for name in exported(tmp_path):
        (tmp_path / name).unlink()
    environment = {**os.environ, "IN_TEST": "", "PYTHONPATH": ""}
    command = [sys.executable, "-c", "from nbdev.doclinks import nbdev_export; nbdev_export()"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert exported(tmp_path) == exported(ROOT)
    for name in exported(ROOT):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), name


def test_notebooks_are_clean():
    from execnb.nbio import read_nb
    from nbdev.clean import clean_nb

    for path in NOTEBOOKS:
        before, after = read_nb(path), read_nb(path)
        clean_nb(after, allowed_cell_metadata_keys={settings()["allowed_cell_metadata_keys"]})
        assert json.dumps(before, default=dict) == json.dumps(after, default=dict), name_of(path)


BOOK = [ROOT / "nbs" / name for name in places((ROOT / "_quarto.yml").read_text())]
WRITES = {}  # the notebook that writes a module
for path in NOTEBOOKS:
    for name in re.findall(r"^#\| default_exp (\S+)", "\n".join(sources(path, "code")), re.M):
        WRITES[f"idm_nb.{name}"] = path
FRONTS = {}  # what the names of the fronts stand for
for path in ROOT.glob("idm_nb/**/__init__.py*"):
    package = list(path.relative_to(ROOT).parent.parts)
    for name, meaning in imports(ast.parse(path.read_text()), package).items():
        FRONTS[".".join([*package, name])] = meaning


def home(name):
    "The notebook that writes a dotted name of the package, followed through fronts; None for a package."
    while name in FRONTS:
        name = FRONTS[name]
    return WRITES.get(name, WRITES.get(name.rpartition(".")[0]))


def later(path, cells):
    "Names that cells of a chapter take from later chapters; appendices may be used everywhere."
    found = []
    for text in cells:
        tree = ast.parse(re.sub(r"^[%!].*$", "pass", text, flags=re.M))
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
        names = {alias.name for node in nodes for alias in node.names}
        for name in filter(re.compile(r"idm_nb\b").match, names.union(imports(tree, []).values())):
            used, is_appendix = home(name), path.parent.name == "appendix"
            is_free = used is None or (used.parent.name == "appendix" and not is_appendix)
            if not is_free and BOOK.index(used) > BOOK.index(path):
                found.append(f"{name_of(path)}: {name}")
            elif is_appendix and used and used.parent.name != "appendix":
                found.append(f"{name_of(path)}: {name}")
    return found


def test_chapters_use_only_chapters_before_them_and_appendices():
    is_exported = re.compile(r"^#\|\s*export", re.M)
    count, found = 0, []
    for path in BOOK:
        cells = sources(path, "code")
        if path.parent.name == "appendix":  # its examples may use any chapter
            cells = list(filter(is_exported.search, cells))
        elif not path.parent.name[0].isdigit():  # pages of the guide and the reference
            continue
        count, found = count + len(cells), found + later(path, cells)
    assert count > 500 and not found, "\n".join(found)


def test_an_import_of_a_later_chapter_is_found():
    flow = next(path for path in BOOK if path.stem.endswith("_to_the_letter"))
    for line in (
        "from idm_nb import TableMap",
        "import idm_nb.study.relevance",
        "def f():\n    from idm_nb.tables import reading",
    ):
        assert later(flow, [line]), line
    assert not later(flow, ["from idm_nb.core.rows import x\nfrom idm_nb.datasets import Torus"])


def set_on_arguments(text):
    "`function: argument.attribute` for each attribute that a function sets on what it received."
    found = set()
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            given = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
            nodes = list(ast.walk(function))
            stored = [node for node in nodes if isinstance(getattr(node, "ctx", 0), ast.Store)]
            given -= {"self", "cls", *(n.id for n in stored if isinstance(n, ast.Name))}
            targets = {ast.unparse(node) for node in stored if isinstance(node, ast.Attribute)}
            calls = [n for n in nodes if isinstance(n, ast.Call) and "setattr" in ast.dump(n.func)]
            targets |= {f"{ast.unparse(n.args[0])}.{ast.unparse(n.args[1])}" for n in calls}
            name = getattr(function, "name", "lambda")
            found |= {f"{name}: {text}" for text in targets if re.match(r"\w+", text)[0] in given}
    return found


def test_no_function_sets_attributes_of_an_argument():
    found = set().union(*(set_on_arguments(path.read_text(encoding="utf-8")) for path in MODULES))
    assert found <= SETTERS
    for line in ("model.a = 1", "model.a.b += 1", "x, model.a = 1, 2", "setattr(model, 'a', 1)"):
        assert set_on_arguments(f"def f(x, *, model=None):\n    for i in x:\n        {line}\n")
    assert not set_on_arguments("def f(self, m):\n    self.a = m.a\n    m = copy(m)\n    m.a = 1\n")


def defined(text):
    "Names of the functions, classes and constants at the top of a module."
    found = set()
    for node in ast.parse(text).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        inner = [part for target in targets if target for part in ast.walk(target)]
        found |= {part.id for part in inner if isinstance(part, ast.Name)}
        found |= {node.name} if hasattr(node, "name") else set()
    return {name for name in found if not re.fullmatch(r"__\w+__", name)}


def test_no_name_is_defined_twice():
    assert defined("A, B = 1, 2\nc: int = 3\ndef d(): e = 1\nclass F: g = 1\n__all__ = []") == set(
        "ABcdF"
    )
    found = [name for path in MODULES for name in defined(path.read_text(encoding="utf-8"))]
    assert not {name for name in found if found.count(name) > 1}


def planted_notebook(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": [text]} for text in cells]})


PLANTED = {
    "idm_nb/__init__.pyi": "from .idm.map import Map as Map",
    "idm_nb/core/files.py": "LIMIT = 3\ndef load(stop=1):\n    'Doc.'\n    return LIMIT",
    "idm_nb/idm/map.py": "class Map:\n  def fit(self):\n    from ..core.files import load\n    load()"
    "\n  def draw(self, load):\n    return load",
    "idm_nb/flow/rows.py": "def rows():\n    return 1",
    "idm_nb/datasets/__init__.py": "from ..flow.rows import rows",
    "tests/test_a.py": "import idm_nb\ndef model(): return idm_nb.Map()\ndef test_fit(model):"
    "\n  model.fit(stop=1)\ndef test_draw(model):\n  model.draw()\ndef test_rows():"
    "\n  from idm_nb.datasets import rows\n  rows()",
    "nbs/1.ipynb": planted_notebook("#| default_exp core.files", "#| export\nLIMIT = 3", "LIMIT"),
    "nbs/2.ipynb": planted_notebook("from idm_nb import datasets", "datasets.rows()"),
    "nbs/3.ipynb": planted_notebook("from idm_nb.core import files", "#| slow\nfiles.load()"),
}


@pytest.mark.parametrize(
    "path, old, new, users",
    [
        ("idm_nb/core/files.py", "3", "4", {"nbs/1.ipynb": 1, "test_fit": 3, "test_draw": 7}),
        ("idm_nb/core/files.py", "Doc.", "Text.", {}),
        ("idm_nb/idm/map.py", "return load", "return 0", {"test_draw": 1, "test_fit": 5}),
        ("idm_nb/idm/map.py", "core.files", "flow.rows", {"test_fit": 1, "test_draw": 5}),
        ("idm_nb/flow/rows.py", "1", "2", {"nbs/2.ipynb": 1, "test_rows": 1}),
        ("idm_nb/core/files.py", "return LIMIT", "return 2", {"test_draw": 6, "test_fit": 1}),
        ("tests/test_a.py", "idm_nb.Map()", "0", {"test_fit": 1, "test_draw": 1}),
    ],
)
def test_the_first_check_finds_what_uses_a_change(path, old, new, users):
    uses = Uses({**PLANTED, path: PLANTED[path].replace(old, new)}, {path: PLANTED[path]})
    found = {name or module: d for (module, name), d in uses.distances(uses.changed).items()}
    assert {k: d for k, d in found.items() if k.startswith(("test_", "nbs/"))} == users


def test_import_cells_hold_only_imports():
    # the documentation is built by executing exported and import cells only
    for path in NOTEBOOKS:
        for text in sources(path, "code"):
            body = ast.parse(re.sub(r"^[%!].*$", "pass", text, flags=re.M)).body
            kinds = {isinstance(node, (ast.Import, ast.ImportFrom)) for node in body}
            is_exported = re.search(r"^#\|\s*exports?\b", text, flags=re.M)
            assert is_exported or len(kinds) < 2, f"{name_of(path)}: {text[:60]!r}"


def test_configurations_agree():
    ini, toml = settings(), pyproject()
    project, extras = toml["project"], toml["project"]["optional-dependencies"]
    assert ini["requirements"].split() == project["dependencies"]
    assert ini["dev_requirements"].split() == extras["dev"]
    assert ini["console_scripts"].split() == [f"{k}={v}" for k, v in project["scripts"].items()]
    assert project["requires-python"] == f">={ini['min_python']}"
    assert ini["description"] == project["description"]
    for key, value in toml["tool"]["nbdev"].items():
        assert ini[key] == (str(value) if isinstance(value, bool) else value), key


def test_version_is_one():
    import idm_nb

    assert settings()["version"] == idm_nb.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == idm_nb.__version__
    assert f"## {idm_nb.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_top_is_small_and_no_public_name_is_that_of_a_module():
    import idm_nb

    assert len(idm_nb.__all__) <= 16
    for part in PARTS:
        package = importlib.import_module(f"idm_nb.{part}")
        modules = {path.stem for path in (ROOT / "idm_nb" / part).glob("*.py")}
        assert not modules & set(package.__all__)  # importing the module would hide the name


def test_fronts_of_the_packages_offer_what_their_modules_export():
    for path in MODULES:
        if path.stem != "command_line":
            offered = importlib.import_module(f"idm_nb.{path.parent.name}").__all__
            names = importlib.import_module(module_name(path)).__all__
            assert set(names) - {path.stem} <= set(offered), path


def test_import_is_light():
    heavy = ["matplotlib", "numba", "pynndescent", "fastcore", "nbdev"]
    for line, names in (
        ("import idm_nb", [*heavy, "pandas", "sklearn", "scipy"]),
        ("from idm_nb import IteratedDiffusionMap", heavy),
    ):
        code = f"import sys; {line}; print([m for m in {names} if m in sys.modules])"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert run.stdout.strip() == b"[]"


def test_notebooks_hold_no_paths_of_a_machine():
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(/home/\w|/root/|/tmp/\w|/Users/|site-packages)", text), name_of(
            path
        )


@pytest.mark.parametrize("made", ["model", "IteratedDiffusionMap().fit(X, y)"])
def test_editors_complete_the_methods_of_a_model(made):
    jedi = pytest.importorskip("jedi")
    text = (ROOT / "tests" / "typed_example.py").read_text() + made + "."
    found = jedi.Script(text, path=ROOT / "tests" / "typed_example.py").complete()
    methods = {"fit", "transform", "predict", "kneighbors", "assign", "score"}
    assert methods <= {completion.name for completion in found}


def test_readme_has_a_line_that_installs_and_tests():
    lines = (ROOT / "README.md").read_text().splitlines()
    for end in ("python -m pytest", "idm-nb demo three-digits --out results"):
        assert any(line.startswith("python3 -m venv") and line.endswith(end) for line in lines), end
