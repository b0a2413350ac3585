"""Names in the appendix of symbols that stand in a module exist."""

import importlib
import re

from book import notebook, sources


def test_names_exist():
    text = "\n".join(sources(notebook("symbols")))
    found = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)\.([A-Za-z_]+)`", text)
    assert len(found) > 30
    for module, name in found:
        assert hasattr(importlib.import_module(f"idm_nb.{module}"), name), f"{module}.{name}"
