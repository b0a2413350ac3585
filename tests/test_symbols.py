"""Names in the appendix of symbols that stand in a module exist."""

import importlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_names_exist():
    (path,) = (ROOT / "nbs").glob("*_symbols.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    found = re.findall(r"`([a-z_]+)\.([A-Za-z_]+)`", text)
    assert len(found) > 30
    for module, name in found:
        assert hasattr(importlib.import_module(f"idm_nb.{module}"), name), f"{module}.{name}"
