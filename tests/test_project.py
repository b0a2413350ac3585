"""The repository agrees with itself: notebooks, modules, configuration, figures and references."""

import ast
import configparser
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest
import yaml
from book import (
    MODULES,
    NBS,
    NOTEBOOKS,
    ROOT,
    cells_of,
    imported,
    module_name,
    name_of,
    source,
    sources,
)

ORDER = [  # a package imports only from those before it
    "core",
    "diffusion",
    "kernels",
    "derivatives",
    "regression",
    "branches",
    "flow",
    "relatives",
    "idm",
    "study",
    "datasets",
    "app",
]


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


def upward(text, module):
    "Imports of packages that do not come before that of a module; its own is allowed."
    own = module.split(".")[1]
    found = {name.split(".")[1] for name in imported(text, module) if "." in name}
    return sorted(found & set(ORDER[ORDER.index(own) + 1 :]))


def test_packages_import_downwards():
    packages = {path.parent.name for path in (ROOT / "idm_nb").glob("*/__init__.py")}
    assert packages == set(ORDER)
    for path in [*MODULES, *(ROOT / "idm_nb").glob("*/__init__.py")]:
        assert not upward(path.read_text(encoding="utf-8"), module_name(path)), path


def test_an_upward_import_is_found():
    module = "idm_nb.flow.closed"
    for line in (
        "from ..idm.estimator import x",
        "import idm_nb.study",
        "from idm_nb.app import tables",
    ):
        assert upward(f"def f():\n    {line}\n", module), line
    assert not upward("from ..core.rows import x\nfrom .diffusion import y\nimport numpy", module)


def test_modules_do_not_import_in_circles():
    names = {module_name(path): path.read_text(encoding="utf-8") for path in MODULES}
    graph = {name: imported(text, name) & set(names) for name, text in names.items()}
    assert sum(map(len, graph.values())) > len(graph)  # imports were seen at all
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)


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


def test_book_lists_every_notebook_in_its_order():
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text())["book"]
    listed = []
    for entry in book["chapters"]:
        listed += entry["chapters"] if isinstance(entry, dict) else [entry]
    assert [name for name in listed if name.endswith(".ipynb")] == [
        f"{name_of(p)}.ipynb" for p in NOTEBOOKS
    ]
    for name in listed:
        assert (NBS / name).exists(), name
    for name in ("_quarto.yml", "root.yml"):
        yaml.safe_load((NBS / name).read_text())


def test_notebooks_stand_in_the_parts_of_their_modules():
    packages = {}
    for path in NOTEBOOKS:
        for text in sources(path, "code"):
            if match := re.match(r"#\|\s*default_exp (\S+)", text):
                packages.setdefault(match[1].partition(".")[0], set()).add(path.parent.name)
    assert set(packages) == set(ORDER) - {"datasets"}
    several = {name: sorted(parts) for name, parts in packages.items() if len(parts) > 1}
    # the derivative theorem and the scaling laws are one package, images a part of the study
    assert several == {
        "derivatives": ["03_derivatives", "04_scaling_laws"],
        "study": ["06_images", "11_study"],
    }


def test_figures_have_captions_and_descriptions():
    for path in NOTEBOOKS:
        for cell in cells_of(path, "code"):
            text = source(cell)
            if re.search(r"^#\|\s*label:\s*fig-", text, flags=re.M):
                for key in ("fig-cap", "fig-alt"):
                    assert len(re.findall(rf"^#\| {key}: \".+\"$", text, flags=re.M)) == 1, (
                        f"{name_of(path)}: {text[:60]}"
                    )
                assert cell["outputs"] or "eval: false" in text, f"{name_of(path)}: {text[:60]}"


def test_references_resolve():
    text = "\n".join("\n".join(sources(path)) for path in NOTEBOOKS)
    labels = re.findall(r"\{#((?:sec|eq|thm|fig|tbl)-[\w-]+)[^}]*\}", text)
    labels += re.findall(r"#\|\s*label:\s*((?:fig|tbl)-[\w-]+)", text)
    assert len(labels) == len(set(labels)), [x for x in labels if labels.count(x) > 1]
    keys = re.findall(r"^@\w+\{(\w+),", (NBS / "references.bib").read_text(), flags=re.M)
    for path in NOTEBOOKS:
        prose = "\n".join(sources(path, "markdown"))
        for name in re.findall(r"(?<![\w`])@([a-zA-Z][\w-]*\w)", prose):
            assert name in labels or name in keys, f"{name_of(path)}: @{name}"


def test_the_top_is_small_and_no_public_name_is_that_of_a_module():
    import idm_nb

    assert len(idm_nb.__all__) <= 15
    for part in ORDER:
        package = importlib.import_module(f"idm_nb.{part}")
        modules = {path.stem for path in (ROOT / "idm_nb" / part).glob("*.py")}
        assert not modules & set(package.__all__)  # importing the module would hide the name


def test_fronts_of_the_packages_offer_what_their_modules_export():
    for path in MODULES:
        if path.stem != "command_line":
            offered = importlib.import_module(f"idm_nb.{path.parent.name}").__all__
            names = importlib.import_module(module_name(path)).__all__
            assert set(names) - {path.stem} <= set(offered), path


def test_names_of_version_01_say_where_they_are():
    import idm_nb

    for name, part in idm_nb._MOVED.items():
        with pytest.warns(FutureWarning, match=rf"idm_nb\.{part}\.{name}"):
            found = getattr(idm_nb, name)
        assert found is getattr(importlib.import_module(f"idm_nb.{part}"), name)
    with pytest.raises(AttributeError):
        idm_nb.no_such_name  # noqa: B018


def test_public_names_are_documented():
    import idm_nb

    for name in idm_nb.__all__:
        found = getattr(idm_nb, name)
        assert (found.__doc__ or "").strip(), name
        if isinstance(found, type):
            for method in ("fit", "transform", "predict"):
                assert not hasattr(found, method) or getattr(found, method).__doc__, (name, method)


def test_import_is_light():
    heavy = [
        "matplotlib",
        "numba",
        "pynndescent",
        "pandas",
        "sklearn",
        "scipy",
        "fastcore",
        "nbdev",
    ]
    code = f"import sys, idm_nb; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    heavy = ["matplotlib", "numba", "pynndescent", "fastcore", "nbdev"]
    code = f"import sys; from idm_nb import IteratedDiffusionMap; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


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


def test_numbers_of_files_are_those_of_the_site():
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text())["book"]
    listed = [
        name for entry in book["chapters"] if isinstance(entry, dict) for name in entry["chapters"]
    ]
    numbered = [name for name in listed if "- unnumbered: true" not in sources(NBS / name)[0]]
    for number, name in enumerate(numbered, 1):  # as Quarto counts
        assert re.fullmatch(rf"\d\d_\w+/{number:02d}_\w+\.ipynb", name), (
            f"{name}: run tools/renumber.py"
        )
