"""Interfaces have no members that only the fast lane uses: what a fast path must know of a part, it
reads from public attributes, or by a function for the class of the part."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAST, LAB = (ROOT / "plugins" / name for name in ("zoo_fast", "zoo_lab"))


def _names(*folders):
    """Return the names of attributes and keyword arguments, and strings, of the files."""
    found = set()
    for file in (file for folder in folders for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.keyword):
                found.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def _members(text):
    """Yield class and name of the public members that the classes of a file define."""
    for cls in (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
        for node in cls.body:
            name = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", "_")
            if not name.startswith("_"):
                yield cls.name, name


def test_members_of_interfaces_are_used_outside_of_the_fast_lane():
    plugins = [path for path in (ROOT / "plugins").glob("zoo_*") if path not in (FAST, LAB)]
    only_fast = _names(FAST) - _names(ROOT / "zoo", *plugins)
    members = {
        f"{cls}.{name}"
        for file in (ROOT / "zoo" / "interfaces").glob("*.py")
        for cls, name in _members(file.read_text(encoding="utf-8"))
        if name in only_fast
    }
    assert members == set()


def test_members_are_found():
    text = "class A:\n    x: int = 0\n    _y: int\n    def f(self): ...\n    def _g(self): ..."
    assert list(_members(text)) == [("A", "x"), ("A", "f")]
