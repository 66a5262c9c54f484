"""A canonical form of specs, so that equivalent specs compare equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zoo_huggingface.config_fields import get_path

_NORM = {
    "kind": "layer",
    "place": "post",
    "eps": 1e-5,
    "embedding": False,
    "final": False,
    "bias": True,
    "first": True,
}
_KIND = {"window": None, "position": None, "no_position": False, "feed_forward": None}
_OUTPUT = {"tied": False, "bias": False, "scale": 1.0, "cap": None, "transform": None}
_IGNORED_KEYS = {"dropout", "std", "generates_padding"}
"""Keys that affect training, initialisation or generation only, not the function computed."""


def canonical(part: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Return a part of a resolved spec with the defaults of the Transformer filled in."""
    if "share_layers" in part:
        dim = part["dim"] or dim
    result: dict[str, Any] = {
        key: _canonical_value(value, dim) for key, value in part.items() if key not in _IGNORED_KEYS
    }
    if "kv_heads" in result:
        if result["project"] == "auto":
            result["project"] = "qkv" if result["heads"] > 1 else "none"
        result["kv_heads"] = result["kv_heads"] or result["heads"]
        result["head_dim"] = result["head_dim"] or dim // result["heads"]
        if result["scorer"].get("scale", 1.0) is None:
            result["scorer"]["scale"] = result["head_dim"] ** -0.5
    if "place" in result and result["final"] is None:
        result["final"] = result["place"] != "post"
    if "share_layers" in result:
        result["dim"] = dim
    if result.get("inner") and "encoder" in result:
        result["inner"]["dim"] = result["inner"]["dim"] or result["encoder"].get("dim", dim)
    if "feed_forward" in result and "layers" in result:
        result["norm"] = result["norm"] or dict(_NORM)
    if "layer_scale" in result:  # a number is an initial value
        result["layer_scale"] = result["layer_scale"] is not None
    if "pattern" in result:
        kinds = result["pattern"] or [_KIND]
        kinds = [_with_position(kind, result["position"]) for kind in kinds]
        result["pattern"] = [kinds[index % len(kinds)] for index in range(result["layers"])]
    if "cross" in result:
        result["cross"] = result["cross"] or result["attention"]
        result["output"] = result["output"] or dict(_OUTPUT)
    return result


def _with_position(kind: Mapping[str, Any], position: Any) -> dict[str, Any]:
    """Return a kind of layers with its position, that of the stack if it has no other."""
    own = kind["position"] is not None or kind["no_position"]
    return {**kind, "position": kind["position"] if own else position}


def _canonical_value(value: Any, dim: int) -> Any:
    if isinstance(value, list | tuple):
        return [_canonical_value(item, dim) for item in value]
    return canonical(value, dim) if isinstance(value, Mapping) else value


def spec_differences(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], dim_path: str
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each difference between the models of two resolved specs.

    Args:
        dim_path: the path of the width, or several, of which one exists.
    """

    def model(spec: Mapping[str, Any]) -> dict[str, Any]:
        dims = (get_path(spec, path) for path in dim_path.split())
        return canonical(spec["model"], next(filter(None, dims)))

    yield from differences(model(ours), model(theirs))


def differences(ours: Any, theirs: Any, path: str = "model") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each difference between two canonical parts."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in dict.fromkeys([*ours, *theirs]):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif ours != theirs:
        yield path, ours, theirs
