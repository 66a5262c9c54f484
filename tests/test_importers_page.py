"""docs/importers.md is up to date, and every importer has a measured difference."""

import importlib.util
import json

from docs_kit import DOCS


def load_module():
    spec = importlib.util.spec_from_file_location("write_importers", DOCS / "write_importers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    module = load_module()
    figures = json.loads(module.FIGURES.read_text(encoding="utf-8"))
    written = module.PAGE.read_text(encoding="utf-8")
    assert written == module.page(figures), "run python docs/write_importers.py --measure"


def test_every_importer_is_within_the_tolerance():
    module = load_module()
    figures = json.loads(module.FIGURES.read_text(encoding="utf-8"))
    assert {each.name for each in module.architectures()} == figures.keys()
    assert max(figures.values()) <= 1e-5
