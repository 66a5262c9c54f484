"""Specs that say the same in other words, brought to one form so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NORM = {"kind": "layer", "place": "post", "eps": 1e-5, "embedding": False}
_OUTPUT = {"tied": False, "bias": False, "scale": 1.0}
_LOOSE = {"dropout", "std"}
"""How a model is trained or drawn, not what it computes."""


def canonical(part: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """A part of a resolved spec, what is left to defaults of the Transformer's own filled in."""
    said: dict[str, Any] = {
        key: canonical(value, dim) if isinstance(value, Mapping) else value
        for key, value in part.items()
        if key not in _LOOSE
    }
    if "kv_heads" in said:
        if said["project"] == "auto":
            said["project"] = "qkv" if said["heads"] > 1 else "none"
        said["kv_heads"] = said["kv_heads"] or said["heads"]
        said["head_dim"] = said["head_dim"] or dim // said["heads"]
    if "feed_forward" in said:
        said["norm"] = said["norm"] or dict(_NORM)
    if "cross" in said:
        said["cross"] = said["cross"] or said["attention"]
        said["output"] = said["output"] or dict(_OUTPUT)
    return said


def differences(ours: Any, theirs: Any, path: str = "model") -> Iterator[tuple[str, Any, Any]]:
    """Where two canonical parts differ: the path, and what stands there in each."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in dict.fromkeys([*ours, *theirs]):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif ours != theirs:
        yield path, ours, theirs
