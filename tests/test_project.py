"""The repository agrees with itself: notebooks, modules, configuration, figures and references."""

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "nbs").glob("*.ipynb"))
BY_HAND = {"__init__.py", "__main__.py"}


def cells(path, kind=None):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [("".join(c["source"]), c) for c in found if kind in (None, c["cell_type"])]


def settings():
    config = configparser.ConfigParser(delimiters=["="])
    config.read(ROOT / "settings.ini")
    return config["DEFAULT"]


def pyproject():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib needs Python 3.11")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_modules_are_what_the_notebooks_export(tmp_path):
    for name in ("nbs", "idm_nb"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "settings.ini", tmp_path)
    for module in (tmp_path / "idm_nb").glob("*.py"):
        if module.name not in BY_HAND:
            module.unlink()
    environment = {**os.environ, "IN_TEST": "", "PYTHONPATH": ""}
    command = [sys.executable, "-c", "from nbdev.doclinks import nbdev_export; nbdev_export()"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    names = lambda folder: sorted(p.name for p in (folder / "idm_nb").glob("*.py"))
    assert names(tmp_path) == names(ROOT)
    for name in names(ROOT):
        if name != "__init__.py":
            assert (tmp_path / "idm_nb" / name).read_text() == (ROOT / "idm_nb" / name).read_text(), name


def test_notebooks_are_clean():
    from execnb.nbio import read_nb
    from nbdev.clean import clean_nb

    for path in NOTEBOOKS:
        before, after = read_nb(path), read_nb(path)
        clean_nb(after, allowed_cell_metadata_keys={settings()["allowed_cell_metadata_keys"]})
        assert json.dumps(before, default=dict) == json.dumps(after, default=dict), path.name


def test_no_module_imports_a_later_one():
    order, found = {}, 0
    for path in NOTEBOOKS:
        for source, _ in cells(path, "code"):
            if match := re.match(r"#\|\s*default_exp\s+(\w+)", source):
                order[match[1]] = path.stem
    for module, notebook in order.items():
        tree = ast.parse((ROOT / "idm_nb" / f"{module}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                assert order[node.module] < notebook, f"{notebook} imports {node.module} of {order[node.module]}"
                found += 1
    assert found > len(order)  # imports were seen at all


def test_import_cells_hold_only_imports():
    # the documentation is built by executing exported and import cells only
    for path in NOTEBOOKS:
        for source, _ in cells(path, "code"):
            body = ast.parse(re.sub(r"^[%!].*$", "pass", source, flags=re.M)).body
            kinds = {isinstance(node, (ast.Import, ast.ImportFrom)) for node in body}
            exported = re.search(r"^#\|\s*exports?\b", source, flags=re.M)
            assert exported or len(kinds) < 2, f"{path.name}: {source[:60]!r}"


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


def test_book_lists_every_notebook():
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text())["book"]
    listed = []
    for entry in book["chapters"]:
        listed += entry["chapters"] if isinstance(entry, dict) else [entry]
    assert sorted(name for name in listed if name.endswith(".ipynb")) == [p.name for p in NOTEBOOKS]
    for name in listed:
        assert (ROOT / "nbs" / name).exists(), name
    for name in ("_quarto.yml", "root.yml"):
        yaml.safe_load((ROOT / "nbs" / name).read_text())


def test_figures_have_captions_and_descriptions():
    for path in NOTEBOOKS:
        for source, cell in cells(path, "code"):
            if re.search(r"^#\|\s*label:\s*fig-", source, flags=re.M):
                assert "#| fig-cap:" in source and "#| fig-alt:" in source, f"{path.name}: {source[:60]}"
                assert cell["outputs"] or "eval: false" in source, f"{path.name}: {source[:60]}"


def test_references_resolve():
    everything = {path: "\n".join(source for source, _ in cells(path)) for path in NOTEBOOKS}
    text = "\n".join(everything.values())
    labels = re.findall(r"\{#((?:sec|eq|thm|fig)-[\w-]+)[^}]*\}", text)
    labels += re.findall(r"#\|\s*label:\s*((?:fig|tbl)-[\w-]+)", text)
    assert len(labels) == len(set(labels)), [x for x in labels if labels.count(x) > 1]
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "nbs" / "references.bib").read_text(), flags=re.M)
    for path in NOTEBOOKS:
        prose = "\n".join(source for source, _ in cells(path, "markdown"))
        for name in re.findall(r"(?<![\w`])@([a-zA-Z][\w-]*\w)", prose):
            assert name in labels or name in keys, f"{path.name}: @{name}"


def test_no_public_name_is_that_of_a_module():
    import idm_nb

    modules = {path.stem for path in (ROOT / "idm_nb").glob("*.py")}
    assert not modules & set(idm_nb.__all__)  # importing the module would hide the name


def test_public_names_are_documented():
    import idm_nb

    for name in idm_nb.__all__:
        found = getattr(idm_nb, name)
        assert (found.__doc__ or "").strip(), name
        if isinstance(found, type):
            for method in ("fit", "transform", "predict"):
                assert not hasattr(found, method) or getattr(found, method).__doc__, (name, method)


def test_import_is_light():
    heavy = ["matplotlib", "numba", "pynndescent", "pandas", "sklearn", "scipy"]
    code = f"import sys, idm_nb; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    code = "import sys; from idm_nb import IteratedDiffusionMap; print([m for m in ['matplotlib', 'numba', 'pynndescent'] if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_docstring_examples():
    import doctest
    import importlib

    for module in sorted((ROOT / "idm_nb").glob("*.py")):
        if not module.name.startswith("_"):
            result = doctest.testmod(importlib.import_module(f"idm_nb.{module.stem}"))
            assert result.failed == 0, module.name


def test_notebooks_hold_no_paths_of_a_machine():
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(/home/\w|/root/|/tmp/\w|/Users/|site-packages)", text), path.name
