"""Recipes are validated like specs: every problem has its line."""

import pytest
import yaml
from recipe_kit import write_recipe

from zoo import SpecError
from zoo.registry.component_registry import default_registry
from zoo_lab.reproduce.recipe_file import read_recipe

RECIPES = sorted(default_registry().recipes)


def _message(path, **options):
    with pytest.raises(SpecError) as caught:
        read_recipe(path, **options)
    return str(caught.value)


def _replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("paper: none", "papers: none", "unknown key 'papers'; did you mean 'paper'?"),
        ("method: words", "method: word", "tokenizers.words.method: is 'word'"),
        ("layers: 1", "layer: 1", "unknown key 'layer'; did you mean 'layers'?"),
        ("- exact-match", "- exact-mach", "no metric named 'exact-mach'"),
        ("unit: '% error'", "unit: percent", "figures[0].unit: is 'percent'"),
        ("type: adam\n", "type: adm\n", "no optimiser named 'adm'"),
    ],
)
def test_a_problem_has_its_line(tmp_path, old, new, message):
    path = write_recipe(tmp_path)
    line = _replace(path, old, new)
    found = _message(path)
    assert f"letters.yaml:{line}:" in found
    assert message in found


@pytest.mark.parametrize("key", ["data", "tokenizers"])
@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ".", "", "a\n", "a\0", "x" * 97])
def test_keys_that_become_file_names_are_names(tmp_path, key, name):
    path = write_recipe(tmp_path)
    data = yaml.safe_load(path.read_text())
    data[key] = [name] if key == "data" else {name: {"keys": ["target"]}}
    path.write_text(yaml.safe_dump(data))
    message = _message(path)
    assert f"'{key}'" in message
    assert "is not a valid name" in message


def test_a_recipe_needs_a_spec_or_a_program(tmp_path):
    path = write_recipe(tmp_path, spec=None, evaluate={}, tokenizers={})
    assert "set 'spec', 'program' or both" in _message(path)


def test_data_of_an_evaluation_is_checked(tmp_path):
    evaluate = {"test": {"data": {"sourc": "x"}}}
    assert "unknown key 'sourc'" in _message(write_recipe(tmp_path, evaluate=evaluate))


def test_overrides_change_the_fingerprint_and_figures_do_not(tmp_path):
    path = write_recipe(tmp_path)
    before = read_recipe(path)
    assert read_recipe(path, overrides=["spec.train.steps=5"]).fingerprint != before.fingerprint
    _replace(path, "at_least: 50", "at_least: 60")
    assert read_recipe(path).fingerprint == before.fingerprint
    assert "--set spec.train.stepps=5" in _message(path, overrides=["spec.train.stepps=5"])


def test_an_unknown_recipe_is_suggested():
    assert "no recipe or file named 'gat-kora'; did you mean 'gat-cora'?" in _message("gat-kora")


def test_shipped_recipes_are_named_like_their_files_and_state_differences():
    for name in RECIPES:
        recipe = read_recipe(name, check=False)
        assert recipe.name == name
        assert recipe.recipe.differences
        assert recipe.plugin


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_the_spec_of_a_shipped_recipe_is_valid(name):
    recipe = read_recipe(name)
    assert recipe.spec is not None or recipe.recipe.program is not None
