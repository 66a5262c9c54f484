"""The import order of rooms: downward only, no plugin in the core, plugins import only `zoo`."""

import ast
from pathlib import Path

import pytest

import zoo

ROOT = Path(__file__).parents[1]
SURFACES = {"zoo": zoo, "zoo.plugin": zoo.plugin}

# From the lowest floor up; rooms of one floor do not import each other.
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
# `Model.from_pretrained`, `save_pretrained` and `push_to_hub` use `import zoo` inside the methods.
EXCEPTION = ("zoo.interfaces.model", "zoo")
HEIGHT = {module: height for height, floor in enumerate(FLOORS) for module in floor}


def _room(module):
    """Return the room of a module: zoo.cli for zoo.cli.check."""
    return ".".join(module.split(".")[:2])


def _imports(path):
    """Yield the modules a file imports; `from zoo import x` is the room `zoo.x` if there is one."""
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


def _arrows():
    """The pairs of different rooms of which the first imports the second."""
    return {
        (_room(_module(path)), _room(imported))
        for path in CORE
        for imported in _imports(path)
        if imported.startswith("zoo.") and _module(path) != "zoo"
        if _room(imported) != _room(_module(path))
    }


CORE = sorted((ROOT / "zoo").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


@pytest.mark.parametrize("path", CORE, ids=_module)
def test_the_core_imports_downward_only_and_no_plugin(path):
    module = _module(path)
    for imported in _imports(path):
        assert not imported.startswith("zoo_"), f"{module} imports the plugin {imported}"
        if imported.split(".")[0] != "zoo" or module == "zoo":
            continue
        if (module, imported) == EXCEPTION:
            continue
        own, other = _room(module), _room(imported)
        assert own == other or HEIGHT[other] < HEIGHT[own], f"{module} imports {imported}"


def test_every_room_of_the_core_has_a_floor():
    assert {_room(_module(path)) for path in CORE} - {"zoo"} == set(HEIGHT)


def test_the_rooms_are_few_and_have_no_cycle():
    rooms, arrows = set(HEIGHT) - {"zoo.__main__"}, _arrows()
    print(f"\n{len(rooms)} rooms on {len(FLOORS)} floors, {len(arrows)} arrows")
    assert len(rooms) <= 20
    remaining = set(arrows)
    while rooms:
        free = {room for room in rooms if not any(arrow[0] == room for arrow in remaining)}
        assert free, f"cycle between {sorted(rooms)}"
        rooms -= free
        remaining = {arrow for arrow in remaining if arrow[1] not in free}


@pytest.mark.parametrize("path", PLUGINS, ids=_module)
def test_a_plugin_imports_only_public_names_and_itself(path):
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
def test_a_file_has_at_most_300_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
