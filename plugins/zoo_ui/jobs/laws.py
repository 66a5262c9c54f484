"""The laws of a component, run one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from zoo.errors import RegistryError
from zoo.registry.component_registry import default_registry
from zoo.testing import run_laws
from zoo.testing.laws import LAWS

_SECONDS = 0.25
_MAX_RUNS = 4


def run(session: dict[str, Any], *, run: str, kind: str, plugin: str, name: str) -> dict[str, Any]:
    """Return the next outcomes of the laws of a component, and whether all have run.

    Each call runs laws for a moment, so that outcomes are shown as they come.

    Args:
        run: a name for the run, the same in all calls.
    """
    runs: dict[str, Iterator[dict[str, Any]]] = session.setdefault("laws", {})
    if run not in runs:
        runs[run] = _outcomes(kind, plugin, name)
        for old in list(runs)[:-_MAX_RUNS]:
            del runs[old]
    found = []
    end = time.monotonic() + _SECONDS
    for outcome in runs[run]:
        found.append(outcome)
        if time.monotonic() > end:
            return {"outcomes": found, "is_complete": False}
    del runs[run]
    return {"outcomes": found, "is_complete": True}


def _outcomes(kind: str, plugin: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each law on each configuration of a component, with its statement."""
    entries = default_registry().components(kind)
    found = [entry for entry in entries if (entry.plugin, entry.name) == (plugin, name)]
    if not found:
        raise RegistryError(f"no {kind} named '{plugin}:{name}' is installed")
    statements = {law.name: law.statement for law in LAWS[kind]}
    for outcome in run_laws(found[0].cls):
        yield vars(outcome) | {"statement": statements.get(outcome.law, "")}
