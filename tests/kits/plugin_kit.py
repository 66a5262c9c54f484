"""Small real distributions, in the layout that pip installs, for tests of plugins."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from zoo.registry.component_registry import ComponentRegistry, default_registry

_serial = itertools.count()

SCORER = '''
from typing import Annotated, Any, ClassVar
from zoo.plugin import FromParent, Scorer, hookimpl

class Plain(Scorer):
    """Inner product score."""

    name: ClassVar[str] = "{name}"

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__()

    def score(self, query, prepared):
        return query @ prepared.transpose(-1, -2)

    def score_pairs(self, query, key):
        return (query * key).sum(dim=-1)
'''
HOOK = """
@hookimpl
def zoo_components():
    return {result}
"""


COMMAND = """
from zoo.command import Command
from zoo.plugin import hookimpl

@hookimpl
def zoo_commands():
    return {result}
"""


def scorer(name: str, more: str = "", *, result: str = "[Plain]") -> str:
    """Return the source of a plugin with a valid scorer ``Plain`` and further code."""
    return SCORER.format(name=name) + more + HOOK.format(result=result)


def command(name: str, target: str) -> str:
    """Return the source of a plugin that adds one command."""
    return COMMAND.format(result=f"[Command({name!r}, {target!r}, 'Print a greeting.')]")


def declare(folder: Path, distribution: str, entry_points: str, *, version: str = "1.2") -> Path:
    """Add the metadata of a distribution to a folder, and return the folder of the metadata."""
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    return info


class Site:
    """A folder of distributions on ``sys.path`` for the duration of a test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        default_registry()  # cached per process, so created before the plugins of a test exist
        folder.mkdir()
        self.folder = folder
        monkeypatch.syspath_prepend(folder)

    def add(
        self,
        distribution: str,
        source: str | None,
        *,
        point: str | None = None,
        version: str = "1.2",
        specs: Mapping[str, str] | None = None,
    ) -> str:
        """Add a distribution with one plugin, without a package if there is no source.

        Returns the name of its module, which is never used twice, so that a test does not find
        a module of another test in ``sys.modules``.
        """
        module = f"{re.sub(r'[-.]', '_', distribution).lower()}_{next(_serial)}"
        if source is not None:
            files = {f"{module}/__init__.py": source}
            files |= {f"{module}/specs/{name}.yaml": text for name, text in (specs or {}).items()}
            for name, text in files.items():
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        self.declare(distribution, f"[zoo]\n{point or distribution} = {module}\n", version=version)
        return module

    def declare(self, distribution: str, entry_points: str, *, version: str = "1.2") -> Path:
        """Add the metadata of a distribution, and return its folder."""
        return declare(self.folder, distribution, entry_points, version=version)

    def registry(self, enabled: str | None = None) -> ComponentRegistry:
        """Return the registry of the installed plugins, with this value of ZOO_PLUGINS."""
        importlib.invalidate_caches()
        return ComponentRegistry.from_environment(
            {} if enabled is None else {"ZOO_PLUGINS": enabled}
        )


# Plugins that cannot be used at all: the source, and a part of the recorded problem.
BROKEN = {
    "raises-on-import": ("raise RuntimeError('no such driver')", "RuntimeError: no such driver"),
    "exits-on-import": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "interrupts-on-import": ("raise KeyboardInterrupt('stop')", "KeyboardInterrupt: stop"),
    "hook-interrupts": (
        scorer("kit-lost", "def stop(): raise KeyboardInterrupt('stop')\n", result="stop()"),
        "KeyboardInterrupt: stop",
    ),
    "syntax-error": ("def (:", "SyntaxError"),
    "imports-missing": ("import no_such_library_at_all", "no_such_library_at_all"),
    "raises-baseexception": (
        "class Panic(BaseException): pass\nraise Panic('panicked')",
        "Panic: panicked",
    ),
    "raises-unprintable": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError('no text')\nraise Odd()",
        "Odd",
    ),
    "misspelt-hook": (
        scorer("kit-lost").replace("zoo_components", "zoo_componentz"),
        "zoo_componentz",
    ),
    "unmarked-hook": (
        scorer("kit-lost").replace("@hookimpl", ""),
        "'zoo_components' is not marked with @zoo.plugin.hookimpl",
    ),
    "no-hook": ("value = 1", "not implement any plugin hook"),
    "wrong-signature": (
        scorer("kit-lost").replace("zoo_components()", "zoo_components(surprise)"),
        "surprise",
    ),
    "hook-raises": (scorer("kit-lost", result="1 / 0"), "ZeroDivisionError: division by zero"),
    "hook-exits": (scorer("kit-lost", result="exit('bye')"), "SystemExit: bye"),
    "returns-none": (scorer("kit-lost", result="None"), "returned None, not a list"),
    "returns-string": (scorer("kit-lost", result="'Plain'"), "returned 'Plain', not a list"),
    "returns-int": (scorer("kit-lost", result="7"), "returned 7, not a list"),
    "returns-class": (scorer("kit-lost", result="Plain"), "Plain'>, not a list"),
    "iteration-raises": (
        scorer(
            "kit-lost",
            "class Odd(list):\n    def __iter__(self): raise OSError('gone')\n",
            result="Odd([1])",
        ),
        "gone",
    ),
}

RAISING_REPR = "class Odd:\n    def __repr__(self): raise OSError('no')\n"

# Invalid items beside the valid `Plain`: code, the item, and a part of the recorded problem.
INVALID_ITEMS = {
    "no-class": ("", "7", "7 is not a component class"),
    "instance": ("", "object()", "is not a component class"),
    "foreign-class": ("class Other: pass", "Other", "Other'> is not a component class"),
    "no-kind": (
        "from zoo.interfaces import Component\nclass Other(Component): name = 'other'",
        "Other",
        "not subclass an interface of zoo.plugin",
    ),
    "kind-of-another": (
        "class Other(Plain): name, kind = 'other', 'decoder'",
        "Other",
        "not subclass an interface of zoo.plugin",
    ),
    "kind-unhashable": (
        "class Other(Plain): name, kind = 'other', ['scorer']",
        "Other",
        "not subclass an interface of zoo.plugin",
    ),
    "abstract": (
        "class Half(Scorer):\n    name = 'half'\n    def score(self, query, prepared): ...",
        "Half",
        "methods of its kind 'scorer': score_pairs",
    ),
    "no-name": (
        "class Other(Scorer):\n    score = score_pairs = Plain.score",
        "Other",
        "Other.name",
    ),
    "capital-name": ("class Other(Plain): name = 'Not Good'", "Other", "'Not Good'"),
    "path-name": ("class Other(Plain): name = '../x'", "Other", "'../x'"),
    "colon-name": ("class Other(Plain): name = 'a:b'", "Other", "'a:b'"),
    "number-name": ("class Other(Plain): name = 3", "Other", "Other.name is 3"),
    "text-version": ("class Other(Plain): name, version = 'o', '1'", "Other", "version is '1'"),
    "zero-version": ("class Other(Plain): name, version = 'o', 0", "Other", "version is 0"),
    "true-version": ("class Other(Plain): name, version = 'o', True", "Other", "version is True"),
    "kwargs": (
        "class Other(Plain):\n    name = 'o'\n    def __init__(self, **kwargs: Any): ...",
        "Other",
        "Other.__init__: parameter 'kwargs' must not be *args or **kwargs",
    ),
    "positional": (
        "class Other(Plain):\n    name = 'o'\n    def __init__(self, size: int): ...",
        "Other",
        "'size' must be keyword-only",
    ),
    "untyped": (
        "class Other(Plain):\n    name = 'o'\n    def __init__(self, *, size): ...",
        "Other",
        "'size' has no type",
    ),
    "unknown-type": (
        "class Other(Plain):\n    name = 'o'\n    def __init__(self, *, size: 'Nowhere'): ...",
        "Other",
        "Nowhere",
    ),
    "uncheckable-type": (
        "class Other(Plain):\n    name = 'o'\n    def __init__(self, *, like: Plain): ...",
        "Other",
        "'like'",
    ),
    "positional-in-a-slot": (
        (
            "from zoo.plugin import Blueprint\n"
            "class Inner:\n    def __init__(self, size: int): ...\n"
            "class Other(Plain):\n    name = 'o'\n"
            "    def __init__(self, *, inner: Blueprint[Inner] | None = None): ..."
        ),
        "Other",
        "Inner.__init__: parameter 'size' must be keyword-only",
    ),
    "twice": ("", "Plain", "scorer 'kit-half' is listed twice in zoo_components"),
    "repr-raises": (
        RAISING_REPR,
        "Odd()",
        "an object whose repr raises OSError is not a component class",
    ),
    "repr-of-name-raises": (
        "class Odd:\n    def __repr__(self): raise OSError('no')\nclass Other(Plain): name = Odd()",
        "Other",
        "Other.name",
    ),
    "repr-of-version-raises": (
        RAISING_REPR + "class Other(Plain): name, version = 'o', Odd()",
        "Other",
        "Other.version",
    ),
}
