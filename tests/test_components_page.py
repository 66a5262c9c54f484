"""docs/components.md is what its script writes."""

import importlib.util
from pathlib import Path

from zoo.cli.index import load_index

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_of_components_is_current():
    spec = importlib.util.spec_from_file_location("write_components", DOCS / "write_components.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "components.md").read_text(encoding="utf-8")
    assert written == module.page(load_index()), "run python docs/write_components.py"
