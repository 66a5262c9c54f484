"""Modules of the core and of components have no state: no caches, no thread-local variables.

State of a module is shared by all models, registries and threads of a process, and outlives them. A
cache belongs to the object that uses it.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXEMPT = ("zoo_fast", "zoo_lab")
"""Compiled kernels and captured graphs are per process; commands of the laboratory are short."""
ALLOWED = {
    "zoo/registry/component_registry.py: default_registry": "one registry per process is the "
    "default of every function with the parameter 'registry'",
    "zoo/interfaces/signature.py: _parameters": "the schema of a class, which depends on the class "
    "only; specs, blueprints and laws read it without a common object",
    "zoo/interfaces/signature.py: _types": "validators of types, which take milliseconds to "
    "build and depend on the type only",
    "zoo/registry/work_limit.py: process_cache": "forms of results on the meta device, which take "
    "half of a check to infer and depend on the operation and the forms of its arguments only",
    "zoo/registry/blueprint.py: _build_stack": "constructors of plugins build their parts without "
    "passing a parent; it is empty outside of a build",
    "zoo/acceleration/preparation.py: _PREPARED": "modules are imported and libraries loaded once "
    "in a process, for all models",
    "zoo/data/files.py: _open_archive": "several files of one archive are opened one by one",
}
MUTABLE = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque", "bytearray"}
MUTABLE |= {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
METHODS = {"append", "add", "update", "setdefault", "pop", "clear", "extend", "insert", "remove"}
METHODS |= {"discard", "popitem", "appendleft"}
CACHES = {"cache", "lru_cache"}
CONTEXTS = {"local", "ContextVar"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _files():
    folders = [ROOT / "zoo", *sorted((ROOT / "plugins").glob("zoo_*"))]
    chosen = [folder for folder in folders if folder.name not in EXEMPT]
    return [file for folder in chosen for file in sorted(folder.rglob("*.py"))]


def _name(node):
    """Return the last name of an expression such as ``functools.lru_cache(maxsize=4)``."""
    if isinstance(node, (ast.Call, ast.Subscript)):
        return _name(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _assignments(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield from (
                (target.id, node.value) for target in targets if isinstance(target, ast.Name)
            )


def _is_mutable(value):
    displays = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    return isinstance(value, displays) or (isinstance(value, ast.Call) and _name(value) in MUTABLE)


def _local_names(function):
    arguments = function.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _written_names(function):
    """Yield the names of variables that a function changes in place, or declares global."""
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield _name(node.value) if isinstance(node.value, ast.Name) else ""
        elif (
            isinstance(node, ast.Call)
            and _name(node) in METHODS
            and isinstance(getattr(node.func, "value", None), ast.Name)
        ):
            yield node.func.value.id


def find_state(text):
    """Return the names of functions and variables of a module that keep state."""
    tree = ast.parse(text)
    found = set()
    values = dict(_assignments(tree))
    found |= {
        name
        for name, value in values.items()
        if isinstance(value, ast.Call) and _name(value) in CACHES | CONTEXTS
    }
    mutable = {name for name, value in values.items() if _is_mutable(value)}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for owner in (tree, *classes) for node in owner.body]
    for function in (node for node in functions if isinstance(node, FUNCTIONS)):
        if any(_name(decorator) in CACHES for decorator in function.decorator_list):
            found.add(function.name)
        written, local = set(_written_names(function)), _local_names(function)
        declared = {
            n for node in ast.walk(function) if isinstance(node, ast.Global) for n in node.names
        }
        found |= declared | (written & mutable - local)
    return found


def test_modules_have_no_state():
    found = {
        f"{file.relative_to(ROOT).as_posix()}: {name}"
        for file in _files()
        for name in find_state(file.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED.keys() == set()


@pytest.mark.parametrize(
    "text",
    [
        "@functools.cache\ndef f(): ...",
        "@lru_cache(maxsize=4)\ndef f(): ...",
        "class A:\n    @cache\n    def f(self): ...",
        "f = cache(abs)",
        "f = threading.local()",
        "f: ContextVar[int] = ContextVar('f')",
        "f = {}\ndef g(): f[1] = 2",
        "f: dict[int, int] = dict()\ndef g(): f.setdefault(1, 2)",
        "f = [1]\nclass A:\n    def g(self): f.append(2)",
        "f = None\ndef g():\n    global f\n    f = 1",
        "f = weakref.WeakKeyDictionary()\ndef g():\n    del f[1]",
    ],
)
def test_state_is_found(text):
    assert find_state(text) == {"f"}


@pytest.mark.parametrize(
    "text",
    [
        "f = {1: 2}\ndef g(): return f[1]",
        "f = {}\nf[1] = 2",
        "f = {}\ndef g(f): f[1] = 2",
        "f = {}\ndef g():\n    f = []\n    f.append(1)",
        "def g():\n    @cache\n    def f(): ...\n    return f",
        "class A:\n    @cached_property\n    def f(self): ...",
    ],
)
def test_constants_and_state_of_objects_are_not_found(text):
    assert find_state(text) == set()
