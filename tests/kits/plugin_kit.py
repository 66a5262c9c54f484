"""Small real distributions, laid out as pip leaves them, for tests of discovery."""

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
    """Scores by the inner product."""

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
    return {answer}
"""


def scorer(name: str, more: str = "", *, answer: str = "[Plain]") -> str:
    """The source of a plugin with a good scorer ``Plain``, further code, and an answer."""
    return SCORER.format(name=name) + more + HOOK.format(answer=answer)


class Site:
    """A folder of distributions on sys.path for the length of a test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        default_registry()  # made once a process, so not while a test's plugins are about
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
        """A distribution with one plugin package; no source, no package. Gives its module's name.

        Module names are never used twice, so that no test finds another's in sys.modules.
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
        """A distribution's metadata alone."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        return info

    def registry(self, allowed: str | None = None) -> ComponentRegistry:
        """What the installed plugins offer now, ZOO_PLUGINS being as given."""
        importlib.invalidate_caches()
        return ComponentRegistry.from_environment(
            {} if allowed is None else {"ZOO_PLUGINS": allowed}
        )


# Plugins of which nothing is usable: the source, and what the recorded cause must say.
BROKEN = {
    "raises-on-import": ("raise RuntimeError('no such driver')", "RuntimeError: no such driver"),
    "exits-on-import": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "syntax-error": ("def (:", "SyntaxError"),
    "imports-missing": ("import no_such_library_at_all", "no_such_library_at_all"),
    "raises-baseexception": (
        "class Panic(BaseException): pass\nraise Panic('rust panicked')",
        "Panic: rust panicked",
    ),
    "raises-unprintable": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError('no words')\nraise Odd()",
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
    "no-hook": ("value = 1", "implements no hook"),
    "wrong-signature": (
        scorer("kit-lost").replace("zoo_components()", "zoo_components(surprise)"),
        "surprise",
    ),
    "hook-raises": (scorer("kit-lost", answer="1 / 0"), "ZeroDivisionError: division by zero"),
    "hook-exits": (scorer("kit-lost", answer="exit('bye')"), "SystemExit: bye"),
    "returns-none": (scorer("kit-lost", answer="None"), "returned None, not a list"),
    "returns-string": (scorer("kit-lost", answer="'Plain'"), "returned 'Plain', not a list"),
    "returns-int": (scorer("kit-lost", answer="7"), "returned 7, not a list"),
    "returns-class": (scorer("kit-lost", answer="Plain"), "Plain'>, not a list"),
    "iteration-raises": (
        scorer(
            "kit-lost",
            "class Odd(list):\n    def __iter__(self): raise OSError('gone')\n",
            answer="Odd([1])",
        ),
        "gone",
    ),
}

RAISING_REPR = "class Odd:\n    def __repr__(self): raise OSError('no')\n"

# Bad items beside the good `Plain`: code, the item, and what the recorded cause must say.
INVALID_ITEMS = {
    "no-class": ("", "7", "7 is no component class"),
    "instance": ("", "object()", "is no component class"),
    "foreign-class": ("class Other: pass", "Other", "Other'> is no component class"),
    "no-kind": (
        "from zoo.interfaces import Component\nclass Other(Component): name = 'other'",
        "Other",
        "Other implements none of the kinds",
    ),
    "kind-of-another": (
        "class Other(Plain): name, kind = 'other', 'decoder'",
        "Other",
        "Other implements none of the kinds",
    ),
    "kind-unhashable": (
        "class Other(Plain): name, kind = 'other', ['scorer']",
        "Other",
        "Other implements none of the kinds",
    ),
    "abstract": (
        "class Half(Scorer):\n    name = 'half'\n    def score(self, query, prepared): ...",
        "Half",
        "Half lacks methods of its kind 'scorer': pairs",
    ),
    "no-name": ("class Other(Scorer):\n    score = pairs = Plain.score", "Other", "Other.name"),
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
        "Other.__init__: parameter 'kwargs' collects arguments",
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
            "from zoo import Blueprint\nclass Inner:\n    def __init__(self, size: int): ...\n"
            "class Other(Plain):\n    name = 'o'\n"
            "    def __init__(self, *, inner: Blueprint[Inner] | None = None): ..."
        ),
        "Other",
        "Inner.__init__: parameter 'size' must be keyword-only",
    ),
    "twice": ("", "Plain", "scorer 'kit-half' is offered twice"),
    "repr-raises": (
        RAISING_REPR,
        "Odd()",
        "an object whose repr raises OSError is no component class",
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
