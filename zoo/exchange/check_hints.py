"""Settings of a spec that change outputs but no shapes, near a module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zoo.interfaces import Model

MAX_SETTINGS, MAX_MODEL_SETTINGS = 20, 48
"""How many settings are listed: near a module, and of a whole model."""
_TRAINING_KEYS = {"dropout", "std"}
_WORDS = re.compile(r"[._]")


def hidden_settings(model: Model, module: str) -> list[str]:
    """Return settings of the component that contains a module, nearest first, as ``path=value``.

    Integers are sizes, which the shapes of weights reveal, except for special tokens.
    """
    names = {
        name: row["path"]
        for row in model.component_paths
        for name in row["at"]
        if row["path"].startswith("model") and (not name or f"{module}.".startswith(f"{name}."))
    }
    nearest = sorted(names, key=len, reverse=True)
    words = set(_WORDS.split(module))
    found: dict[str, Any] = {}
    for name in nearest if len(nearest) == 1 else nearest[:-1]:  # the last is the whole model
        for key, value in _settings(_get(model.spec or {}, names[name]), names[name]):
            found.setdefault(key, value)
    ranked = sorted(found, key=lambda key: -len(words & set(_WORDS.split(key))))
    max_settings = MAX_MODEL_SETTINGS if len(nearest) == 1 else MAX_SETTINGS
    return [f"{key}={found[key]}" for key in ranked[:max_settings]]


def _settings(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key not in _TRAINING_KEYS:
                yield from _settings(value, f"{path}.{key}")
    elif isinstance(node, (bool, float, str)) or path.endswith((".padding", ".bos", ".eos")):
        yield path, str(node).lower() if isinstance(node, bool) else node


def _get(spec: Mapping[str, Any], path: str) -> Any:
    node: Any = spec
    for key in re.findall(r"[^.\[\]]+", path):
        node = node[int(key)] if isinstance(node, (list, tuple)) else node[key]
    return node
