"""Imports go down only: the core knows no plugin, a floor only those below, plugins only `zoo`."""

import ast
from pathlib import Path

import pytest

import zoo

ROOT = Path(__file__).parents[1]
SURFACES = {"zoo": zoo, "zoo.plugin": zoo.plugin}

# From the ground up; modules on one line may not import each other.
FLOORS = [
    {"zoo.about", "zoo.files", "zoo.lazy"},
    {"zoo.errors"},
    {"zoo.interfaces"},
    {"zoo.registry"},
    {"zoo.attention"},
    {"zoo.spec"},
    {"zoo.evaluation", "zoo.generation", "zoo.heatmap"},
    {"zoo.artifact"},
    {"zoo.hub"},
    {"zoo.exchange"},
    {"zoo.demo", "zoo.scaffold", "zoo.testing"},
    {"zoo.cli"},
    {"zoo.plugin"},
    {"zoo.__main__"},
]
# `Model.from_pretrained` and its kin are conveniences: inside the methods, they use `import zoo`.
PUBLIC_DOOR = ("zoo.interfaces.model", "zoo")
HEIGHT = {module: height for height, floor in enumerate(FLOORS) for module in floor}


def _room(module):
    """zoo.cli.check -> zoo.cli"""
    return ".".join(module.split(".")[:2])


def _imports(path):
    """The modules a file imports; `from zoo import x` counts as x's own module if it is one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in HEIGHT else node.module


def _module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


CORE = sorted((ROOT / "zoo").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


@pytest.mark.parametrize("path", CORE, ids=_module)
def test_the_core_imports_downward_only_and_no_plugin(path):
    module = _module(path)
    for imported in _imports(path):
        assert not imported.startswith("zoo_"), f"{module} imports the plugin {imported}"
        if imported.split(".")[0] != "zoo" or module == "zoo":
            continue
        if (module, imported) == PUBLIC_DOOR:
            continue
        own, other = _room(module), _room(imported)
        assert own == other or HEIGHT[other] < HEIGHT[own], f"{module} imports {imported}"


def test_every_room_of_the_core_has_a_floor():
    assert {_room(_module(path)) for path in CORE} - {"zoo"} == set(HEIGHT)


@pytest.mark.parametrize("path", PLUGINS, ids=_module)
def test_a_plugin_imports_only_the_public_zoo_and_itself(path):
    own = path.relative_to(ROOT / "plugins").parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names = [node.module]
            if node.module in SURFACES:
                private = {alias.name for alias in node.names} - set(SURFACES[node.module].__all__)
                assert not private, f"{private} is not public"
        for name in names:
            package = name.split(".")[0]
            assert not package.startswith("zoo_") or package == own, f"imports {name}"
            assert not name.startswith("zoo.") or name in SURFACES, f"imports {name}, not public"


@pytest.mark.parametrize("path", [*CORE, *PLUGINS], ids=_module)
def test_no_file_grows_beyond_three_hundred_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
