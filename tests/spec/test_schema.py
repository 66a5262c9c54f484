"""The JSON Schema of specs, above all of those that extend another one."""

import re

import jsonschema
import pytest

from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_file, read_text
from zoo.spec.schema import spec_schema

DOCS = ("README.md", "docs/*.md")


@pytest.fixture(scope="module")
def checker():
    return jsonschema.Draft202012Validator(spec_schema(default_registry()))


def _published():
    """Specs of plugins and of recipes by name, of which some extend others."""
    registry = default_registry()
    for name, files in registry.specs.items():
        yield name, read_file(files[0].path).data
    for name, files in registry.recipes.items():
        spec = read_file(files[0].path, "a recipe").data.get("spec")
        if isinstance(spec, dict):
            yield f"recipe {name}", {"zoo": 1, "name": name, **spec}


def _documented(root):
    """Specs in the documentation that extend another one."""
    for pattern in DOCS:
        for page in sorted(root.glob(pattern)):
            for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
                if re.search(r"^extends:", block, re.M):
                    yield page.name, read_text(block, page.name).data


def test_published_and_documented_specs_are_valid(checker, request):
    specs = [*_published(), *_documented(request.config.rootpath)]
    assert sum("extends" in spec for _, spec in specs) >= 20
    for name, spec in specs:
        problems = [
            f"{error.json_path}: {error.message[:200]}" for error in checker.iter_errors(spec)
        ]
        assert problems == [], name


GOOD = [
    {"model": {"decoder": {"layers": 3}}},
    {"model": {"decoder": {"attention": {"scorer": {"hidden": 8}}}}},
    {"model": {"decoder": {"attention": {"scorer": "dot"}}}},
    {"model": {"decoder": {"type": "transformer", "layers": 2}}},
    {"model": {"encoder": {"hidden": 64}}, "sampler": "greedy"},
    {"train": {"steps": 10, "optimiser": {"lr": 0.1}, "batch": {"items": 4}}},
    {"train": {"data": {"file": "a.tsv"}, "start": "model.safetensors"}},
    {"preprocessing": {"source": {"tokenizer": "words.json"}}},
    {"metrics": ["accuracy"], "sampler": None},
]


@pytest.mark.parametrize("changes", GOOD)
def test_changes_may_lack_types_and_keys(checker, changes):
    checker.validate({"zoo": 1, "extends": "transformer-small", **changes})


BAD = [
    {"trian": {}},
    {"name": 3},
    {"model": {"decoder": {"layer": 3}}},
    {"model": {"decoders": {}}},
    {"model": {"decoder": {"type": "transformer", "hidden": 3}}},
    {"model": {"decoder": {"type": "trnasformer"}}},
    {"model": {"decoder": "additive"}},
    {"model": {"decoder": {"attention": {"scorers": "dot"}}}},
    {"model": {"decoder": {"attention": {"scorer": {"hidn": 8}}}}},
    {"model": {"encoder": {"hidden": "large"}}},
    {"train": {"stepz": 10}},
    {"train": {"steps": "many"}},
    {"train": {"optimiser": {"learning_rate": 0.1}}},
    {"train": {"optimiser": {"type": "adamw", "momentum": 0.1}}},
    {"train": {"batch": {"sizes": 4}}},
    {"train": {"data": {"type": "parallel-text", "columns": 3}}},
    {"preprocessing": {"source": {"tokeniser": "words.json"}}},
    {"metrics": ["acuracy"]},
    {"metrics": [{"mode": "word"}]},
]


@pytest.mark.parametrize("changes", BAD)
def test_unknown_keys_and_wrong_values_of_changes_are_found(checker, changes):
    assert not checker.is_valid({"zoo": 1, "extends": "transformer-small", **changes})
