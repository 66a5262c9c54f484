"""Public names that are imported on first use."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a module.

    The names are those imported under ``if TYPE_CHECKING:`` in the module's source, so that
    type checkers and Python read the same list.
    """
    module = sys.modules[package]
    assert module.__spec__ is not None
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    home_of = {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            home = importlib.import_module(home_of[name])
        except ModuleNotFoundError as error:
            plugin = home_of[name].partition(".")[0]
            if error.name != plugin:
                raise
            raise ImportError(
                f"{package}.{name} is in the plugin '{plugin}', which is not installed"
            ) from None
        value = getattr(home, name)
        setattr(module, name, value)
        return value

    names = sorted(home_of)
    return get, lambda: list(names), names
