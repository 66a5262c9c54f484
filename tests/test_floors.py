"""The import order: rooms downward only; core <- components <- fast lane <- laboratory."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import zoo
import zoo.command

ROOT = Path(__file__).parents[1]
SURFACES = {"zoo": zoo, "zoo.command": zoo.command, "zoo.plugin": zoo.plugin}

# From the lowest level up; rooms of one level do not import each other.
LEVELS = [
    {"zoo.about", "zoo.files", "zoo.lazy"},
    {"zoo.errors"},
    {"zoo.interfaces"},
    {"zoo.registry"},
    {"zoo.acceleration"},
    {"zoo.adapters"},
    {"zoo.attention"},
    {"zoo.spec"},
    {"zoo.data"},
    {"zoo.generation", "zoo.plotting"},
    {"zoo.artifact", "zoo.heatmap"},
    {"zoo.hub"},
    {"zoo.evaluation"},
    {"zoo.training"},
    {"zoo.scaffold", "zoo.testing"},
    {"zoo.cli"},
    {"zoo.command", "zoo.plugin"},
    {"zoo.__main__"},
]
# `Model.from_pretrained`, `save_pretrained` and `push_to_hub`, and specs that extend a model, use
# `import zoo` inside of functions.
EXCEPTIONS = {("zoo.interfaces.model", "zoo"), ("zoo.spec.extending", "zoo")}
HEIGHT = {module: height for height, level in enumerate(LEVELS) for module in level}


def _room(module):
    """Return the room of a module: zoo.cli for zoo.cli.check."""
    return ".".join(module.split(".")[:2])


@pytest.fixture(scope="module")
def trees():
    """The syntax tree of each file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in [*CORE, *PLUGINS]}


def _imports(tree):
    """Yield the modules a file imports; `from zoo import x` is the room `zoo.x` if there is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in HEIGHT else node.module


def _module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _arrows(trees):
    """The pairs of different rooms of which the first imports the second."""
    return {
        (_room(_module(path)), _room(imported))
        for path in CORE
        for imported in _imports(trees[path])
        if imported.startswith("zoo.") and _module(path) != "zoo"
        if _room(imported) != _room(_module(path))
    }


CORE = sorted((ROOT / "zoo").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


def test_the_core_imports_downward_only_and_no_plugin(trees):
    wrong = []
    for path in CORE:
        module = _module(path)
        for imported in _imports(trees[path]):
            package, room, other = imported.split(".")[0], _room(module), _room(imported)
            if package == "zoo" and module != "zoo" and (module, imported) not in EXCEPTIONS:
                allowed = room == other or HEIGHT[other] < HEIGHT[room]
            else:  # the table of `zoo` names what plugins provide
                allowed = module == "zoo" or not package.startswith("zoo_")
            if not allowed:
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_every_room_of_the_core_has_a_level():
    assert {_room(_module(path)) for path in CORE} - {"zoo"} == set(HEIGHT)


def test_the_rooms_are_few_and_have_no_cycle(trees):
    rooms, arrows = set(HEIGHT) - {"zoo.__main__"}, _arrows(trees)
    print(f"\n{len(rooms)} rooms on {len(LEVELS)} levels, {len(arrows)} arrows")
    assert len(rooms) <= 25
    graph = {room: {other for own, other in arrows if own == room} for room in rooms}
    TopologicalSorter(graph).prepare()  # raises CycleError


def _run_time_nodes(node):
    """Yield the nodes below, including those in functions, but not of `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from _run_time_nodes(child)


def _file_imports(tree, modules):
    """Return the files of the core and the plugins that a file imports, also in functions."""
    found = set()
    for node in _run_time_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & modules or {node.module}
            found |= {node.module} if inner - modules else set()
    return found & modules


def test_files_do_not_import_each_other_in_a_circle(trees):
    paths = {_module(path): path for path in CORE}
    paths |= {_module(path).removeprefix("plugins."): path for path in PLUGINS}
    graph = {name: _file_imports(trees[path], set(paths)) - {name} for name, path in paths.items()}
    for module, imported in EXCEPTIONS:
        graph[module].discard(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"imports in a circle: {' -> '.join(error.args[1])}") from None


# Components import public names and themselves. The fast lane also imports the core and the
# components that it accelerates, the laboratory everything, and tools the core and other tools.
FAST, LAB = "zoo_fast", "zoo_lab"
TOOLS = {"zoo_demo", "zoo_diff", "zoo_exchange", "zoo_inspect", "zoo_ui"}


def test_plugins_import_only_public_names_and_what_is_below_them(trees):
    wrong = []
    for path in PLUGINS:
        own = path.relative_to(ROOT / "plugins").parts[0]
        wrong += [f"{_module(path)} {problem}" for problem in _plugin_problems(trees[path], own)]
    assert wrong == []


def _may_import(own, package):
    """Whether a plugin may import another one."""
    if own == FAST:
        return package != LAB
    return package == own or own == LAB or (own in TOOLS and package in TOOLS)


def _plugin_problems(tree, own):
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                yield "has a relative import"
                continue
            names = [node.module]
            if node.module in SURFACES and own not in {FAST, LAB, *TOOLS}:
                public = set(SURFACES[node.module].__all__)
                yield from (
                    f"imports {alias.name}, which is not public"
                    for alias in node.names
                    if alias.name not in public
                )
        for name in names:
            package = name.split(".")[0]
            if package.startswith("zoo_") and not _may_import(own, package):
                yield f"imports the plugin {name}"
            if name.startswith("zoo.") and name not in SURFACES and own not in {FAST, LAB, *TOOLS}:
                yield f"imports {name}, which is not public"


def test_files_have_at_most_450_lines():
    lengths = {
        _module(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in [*CORE, *PLUGINS]
    }
    assert {module: lines for module, lines in lengths.items() if lines > 450} == {}
