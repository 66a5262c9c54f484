"""Kinds of layers: windows and layers without positions, in specs and configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import config_error, get_list, get_path, get_value

Kinds = Sequence[Mapping[str, Any]]
SLIDING, FULL = "sliding_attention", "full_attention"


def shortest_pattern(kinds: Kinds) -> list[dict[str, Any]]:
    """Return the kinds of all layers as the shortest pattern that gives them when repeated."""
    for length in range(1, len(kinds) + 1):
        if all(kind == kinds[index % length] for index, kind in enumerate(kinds)):
            break
    return [dict(kind) for kind in kinds[:length]] if any(kinds) else []


def layer_kinds(spec: Mapping[str, Any], side: str = "decoder") -> list[Mapping[str, Any]]:
    """Return the kind of each layer of the decoder, or encoder, of a resolved spec."""
    pattern = get_path(spec, f"model.{side}.pattern") or [{}]
    layers: int = get_path(spec, f"model.{side}.layers")
    return [pattern[index % len(pattern)] for index in range(layers)]


def read_window(config: Mapping[str, Any], default: int | None = None) -> int | None:
    """Return the window of a config, None without one."""
    window: int | None = default
    if "sliding_window" in config:
        window = get_value(config, "sliding_window", int, None)
    if window is not None and window < 1:
        raise config_error("sliding_window", window, "it should be at least 1")
    return window


def windowed_layers(
    config: Mapping[str, Any], layers: int, default: Sequence[bool], window: int | None
) -> list[dict[str, Any]]:
    """Return the kind of each layer according to `layer_types`.

    Args:
        default: whether each layer has a window if the config has no such key.
        window: the window of those that have one; None if it is disabled.
    """
    types = get_list(config, "layer_types", str)
    if types and len(types) < layers:
        raise config_error("layer_types", types, f"num_hidden_layers is {layers}")
    if any(kind not in (SLIDING, FULL) for kind in types):
        raise config_error("layer_types", types, f"supported values: {SLIDING}, {FULL}")
    chosen = [kind == SLIDING for kind in types[:layers]] if types else default
    if any(chosen) and window is None:
        raise config_error("layer_types", types, "sliding_window is not set, or not used")
    return [{"window": window} if has_window else {} for has_window in chosen]


def layer_types(spec: Mapping[str, Any], side: str = "decoder") -> list[str]:
    """Return the `layer_types` of a config for a resolved spec."""
    windows = (kind.get("window") for kind in layer_kinds(spec, side))
    return [FULL if window is None else SLIDING for window in windows]


def write_layer_types(config: dict[str, Any], spec: Mapping[str, Any]) -> None:
    """Set `layer_types` and the window of a config."""
    window = only_window(spec)
    config["layer_types"] = layer_types(spec)
    config |= {"use_sliding_window": window is not None, "sliding_window": window}


def only_window(spec: Mapping[str, Any], side: str = "decoder") -> int | None:
    """Return the window of the layers that have one."""
    given = (kind.get("window") for kind in layer_kinds(spec, side))
    windows: set[int] = {window for window in given if window is not None}
    if len(windows) > 1:
        raise ZooError(
            f"model.{side}.pattern has windows of different widths, {sorted(windows)}, which "
            "transformers does not support"
        )
    return windows.pop() if windows else None
