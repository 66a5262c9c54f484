"""A small study of the recipe of `recipe_kit`."""

import pytest
import yaml
from recipe_kit import write_recipe


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The path of a study whose third variant cannot be composed."""
    monkeypatch.setenv("ZOO_DATA", str(tmp_path / "data"))
    write_recipe(tmp_path)
    content = {
        "zoo": 1,
        "name": "letters-study",
        "base": "letters.yaml",
        "set": {"train.steps": 2},
        "seeds": [0, 1],
        "groups": {
            "scorer": {
                "title": "scorers",
                "swap": {"decoder.attention.scorer": ["scaled-dot", "general"]},
            },
            "align": {
                "swap": {"decoder.attention.align": ["monotonic"]},
                "variants": {"wide": {"decoder.attention": {"heads": 4}}},
                "left_out": {"local-m": "a reason"},
            },
        },
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
