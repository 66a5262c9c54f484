"""The laws of a component, run one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zoo.errors import RegistryError
from zoo.registry.component_registry import default_registry
from zoo.testing import run_laws
from zoo.testing.laws import LAWS


def run(session: dict[str, Any], *, kind: str, plugin: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each law on each configuration of a component, with its statement."""
    entries = default_registry().components(kind)
    found = [entry for entry in entries if (entry.plugin, entry.name) == (plugin, name)]
    if not found:
        raise RegistryError(f"no {kind} named '{plugin}:{name}' is installed")
    statements = {law.name: law.statement for law in LAWS[kind]}
    for outcome in run_laws(found[0].cls):
        yield vars(outcome) | {"statement": statements.get(outcome.law, "")}
