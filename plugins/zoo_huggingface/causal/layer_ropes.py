"""Rotary positions that differ between layers with and without a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo_huggingface.causal.layer_kinds import FULL, SLIDING
from zoo_huggingface.causal.rope import LENGTHS, Config, Rope
from zoo_huggingface.config_fields import config_error, get_mapping, get_value

_TYPES = FULL, SLIDING


@dataclass(frozen=True)
class LayerRopes:
    """Rotary positions of the layers without a window, and of those with one.

    Args:
        full: positions of the layers without a window.
        sliding: positions of the layers with one.
        theta_keys: keys of the base of both in configs of transformers 4.
        scaled: types of layers to which ``rope_scaling`` of transformers 4 applies.
    """

    full: Rope
    sliding: Rope
    theta_keys: tuple[str, str]
    scaled: tuple[str, ...]

    def read(self, config: Config) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of both positions; lengths must be in the config."""
        by_type = get_mapping(config, "rope_parameters")
        if by_type.keys() - _TYPES:
            raise config_error("rope_parameters", by_type, f"supported keys: {', '.join(_TYPES)}")
        full, sliding = (
            self._read_type(config, by_type, each, rope, theta_key)
            for each, rope, theta_key in self._types
        )
        return full, sliding

    def set_positions(self, stack: dict[str, Any], config: Config) -> None:
        """Set the positions of a stack of layers, whose pattern has windows only."""
        full, sliding = self.read(config)
        stack["position"] = {"type": "rotary", **full}
        for kind in stack["pattern"]:
            kind |= {"position": {"type": "rotary", **sliding}} if kind and sliding != full else {}

    def write(self, config: dict[str, Any], stack: Mapping[str, Any]) -> None:
        """Set the keys of a config from a resolved stack of layers."""
        own = (kind["position"] for kind in stack["pattern"] if kind["window"] is not None)
        positions: Sequence[Mapping[str, Any]]
        positions = stack["position"], next(own, {"theta": self.sliding.theta}) or stack["position"]
        by_type = {}
        for (each, rope, theta_key), position in zip(self._types, positions, strict=True):
            flat = {key: config[key] for key in LENGTHS if key in config}
            rope.write(flat, position)
            by_type[each], scaling = flat.pop("rope_parameters"), flat.pop("rope_scaling")
            config |= {theta_key: flat.pop("rope_theta"), **flat}
            if self.scaled == (each,):
                config["rope_scaling"] = scaling
        config["rope_parameters"] = by_type

    @property
    def _types(self) -> list[tuple[str, Rope, str]]:
        return list(zip(_TYPES, (self.full, self.sliding), self.theta_keys, strict=True))

    def _read_type(
        self, config: Config, by_type: Config, each: str, rope: Rope, theta_key: str
    ) -> dict[str, Any]:
        scaling = get_mapping(config, "rope_scaling") if each in self.scaled else {}
        # As transformers: the type of a scaling is its 'rope_type', not its 'type'.
        given = {"rope_type": "default", **get_mapping(by_type, each), **scaling}
        if "rope_theta" not in given:
            given["rope_theta"] = get_value(config, theta_key, float, rope.theta)
        key = "rope_scaling" if scaling else "rope_parameters"
        if given.get("truncate", True) is not True:
            raise config_error(key, given, "transformers ignores 'truncate' in types of layers")
        return rope.read_mapping(config, key, given)
