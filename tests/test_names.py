"""One word per thing: names that are not used, classes that share a name, wide constructors."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [path for top in ("zoo", "plugins") for path in sorted((ROOT / top).rglob("*.py"))]
MAX_PARAMETERS = 10

# Each says nothing to a stranger, and what to write instead.
BANNED = {
    "HandBlock": "HandWrittenBlock",
    "Made": "the name of the thing",
    "cut": "shortened, or the number that is the bound",
    "keep_again": "the name of what is kept",
    "least": "min_ and of what, or threshold",
    "left_out": "excluded",
    "most": "max_ and of what",
    "say": "the name of what is computed",
    "seeds_asked": "planned_seeds",
}
# Keys of files that exist; an attribute has the name of its parameter.
KEYS = {
    "least and most are keys of the spec": {
        "plugins/zoo_datasets/joined.py": {"least", "most"},
        "plugins/zoo_datasets/scenes.py": {"least", "most"},
        "plugins/zoo_memory/copy_task.py": {"least", "most"},
    },
    "left_out is a key of studies": {
        "plugins/zoo_lab/compare/comparison_result.py": {"left_out"},
        "plugins/zoo_lab/compare/study_schema.py": {"left_out"},
    },
    "say is part of the names of weights": {"plugins/zoo_memory/memory_encoder.py": {"say"}},
}
# Parameters called limit that are keys of specs, recipes and studies; others say of what.
LIMITS = {
    "plugins/zoo_draw/bound.py",
    "plugins/zoo_lab/compare/study_schema.py",
    "plugins/zoo_lab/reproduce/recipe_schema.py",
    "zoo/spec/training.py",
}
# Public classes of the same name, and why.
SAME_NAME = {
    "Audio": "a value of datasets; the preprocessor `audio`",
    "Linear": "the layer; the schedule `linear`",
    "Rotary": "the position `rotary`; the operation `rotary` of maps",
    "Split": "the dataset `split`; the operation `split` of maps",
    "T5": "the position `t5`; the architecture T5 of Hugging Face",
}


@pytest.fixture(scope="module")
def nodes():
    """All nodes of each file; parsing takes longer than the tests."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    return {path: list(ast.walk(tree)) for path, tree in trees.items()}


def _names(node):
    """Return the identifiers of a node: variables, attributes, parameters, definitions."""
    fields = ("id", "attr", "arg", "name", "asname")
    return {getattr(node, field, None) for field in fields}


def _relative(path):
    return path.relative_to(ROOT).as_posix()


def _existing(paths):
    """Return the paths that exist; a plugin may have been deleted."""
    return {path for path in paths if (ROOT / path).exists()}


def test_banned_names_are_only_keys_of_files(nodes):
    found = defaultdict(set)
    for path in SOURCES:
        for node in nodes[path]:
            if used := _names(node) & BANNED.keys():
                found[_relative(path)] |= used
    keys = {path: names for files in KEYS.values() for path, names in files.items()}
    assert found == {path: keys[path] for path in _existing(keys)}


def test_a_parameter_that_is_a_limit_says_of_what(nodes):
    found = {
        _relative(path)
        for path in SOURCES
        for node in nodes[path]
        if isinstance(node, ast.arg) and node.arg == "limit"
    }
    assert found == _existing(LIMITS)


def test_cuda_graphs_are_captured_not_recorded():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "lab").rglob("*.md"), *SOURCES]
    wording = re.compile(r"\brecord(s|ed|ing)?\b[^.:]{0,40}\bCUDA\s+graph", re.IGNORECASE)
    found = {
        f"{_relative(path)}: {match[0]}"
        for path in pages
        for match in wording.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_each_public_class_has_its_own_name(nodes):
    files = defaultdict(set)
    for path in SOURCES:
        for node in nodes[path]:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].add(f"{_relative(path)}:{node.lineno}")
    shared = {name: sorted(places) for name, places in files.items() if len(places) > 1}
    assert shared.keys() <= SAME_NAME.keys(), shared


def _parameter_count(function):
    arguments = function.args
    return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1


def test_constructors_have_at_most_ten_parameters(nodes):
    wide = {
        f"{_relative(path)}: {node.name}": count
        for path in SOURCES
        for node in nodes[path]
        if isinstance(node, ast.ClassDef)
        for inner in node.body
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
        if (count := _parameter_count(inner)) > MAX_PARAMETERS
    }
    assert wide == {}
