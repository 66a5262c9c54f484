"""Rotary positions in configs: `rope_parameters` of transformers 5, `rope_scaling` of 4."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import config_error, get_mapping, get_value

Config = Mapping[str, Any]
LENGTHS = ("max_position_embeddings", "original_max_position_embeddings")
_LENGTH = LENGTHS[1]
ROPE_KEYS = (
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "partial_rotary_factor",
    *LENGTHS,
)
"""Keys of a config that this module reads."""
_COMMON = {"type", "rope_type", "rope_theta", "partial_rotary_factor", "finetuned"}
_KEYS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", _LENGTH},
    "yarn": {
        *("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
        *("truncate", _LENGTH),
    },
    "longrope": {"factor", "attention_factor", "short_factor", "long_factor", _LENGTH},
}
"""Types of angles, and the keys of each besides the common ones."""


@dataclass(frozen=True)
class Rope:
    """Rotary positions of an architecture.

    Args:
        theta: default base of the angles.
        part: default fraction of a head that is rotated; None if all of it always is.
        names: other names of types.
        types: the types that transformers supports.
    """

    theta: float = 10000.0
    part: float | None = None
    names: Mapping[str, str] | None = None
    types: tuple[str, ...] = tuple(_KEYS)

    def read(self, config: Config) -> dict[str, Any]:
        """Return the parameters of the position in a spec; lengths must be in the config."""
        # rope_scaling takes precedence over rope_parameters.
        key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
        return self.read_mapping(config, key, get_mapping(config, key))

    def read_mapping(self, config: Config, key: str, rope: Config) -> dict[str, Any]:
        """Return the parameters of the position for a mapping, which errors name by its key."""
        kind = rope.get("rope_type", rope.get("type", "default"))
        kind = (self.names or {}).get(kind, kind) if isinstance(kind, str) else kind
        if kind == "dynamic":
            raise config_error(
                key,
                rope,
                "angles that depend on the length of the text are not supported, because keys in "
                "a cache would have been rotated by other angles",
            )
        if kind not in self.types:
            raise config_error(key, rope, f"supported types: {', '.join(self.types)}")
        if any(isinstance(value, Mapping) for value in rope.values()):
            raise config_error(key, rope, "angles that differ by layer are not supported")
        for name in rope.keys() - _COMMON - _KEYS[kind]:
            if rope[name] is not None:
                raise config_error(key, rope, f"the type '{kind}' has no key '{name}'")
        try:
            scaling = self._read_scaling(kind, rope, config)
        except ZooError as error:
            raise config_error(key, rope, str(error).partition(": ")[2]) from None
        position = {"theta": get_value({**config, **rope}, "rope_theta", float, self.theta)}
        part = self._read_part(config, rope, key)
        position |= {"part": part} if part != 1 else {}
        return position | ({"scaling": {"type": kind, **scaling}} if scaling else {})

    def _read_part(self, config: Config, rope: Config, key: str) -> float:
        given: float = get_value(
            {**config, **rope}, "partial_rotary_factor", float, self.part or 1.0
        )
        if self.part is None and given != 1:
            where = key if "partial_rotary_factor" in rope else "partial_rotary_factor"
            raise config_error(where, given, "partial rotary embeddings are not supported")
        return given

    def _read_scaling(self, kind: str, rope: Config, config: Config) -> dict[str, Any]:
        """Return the parameters of a type, empty for the default."""
        if kind == "default":
            return {}
        if kind == "linear":
            return {"factor": get_value(rope, "factor", float)}
        length = get_value(config, "max_position_embeddings", int)
        original = config.get(_LENGTH) or rope.get(_LENGTH) or length
        lengths = {"original_length": get_value({_LENGTH: original}, _LENGTH, int)}
        if kind == "llama3":
            return {
                "factor": get_value(rope, "factor", float),
                "low": get_value(rope, "low_freq_factor", float),
                "high": get_value(rope, "high_freq_factor", float),
                **lengths,
            }
        factor = get_value(rope, "factor", float, None)
        if kind == "yarn":
            yarn = {
                "factor": length / original if factor is None else factor,
                "fast": get_value(rope, "beta_fast", float, None) or 32.0,
                "slow": get_value(rope, "beta_slow", float, None) or 1.0,
                "truncate": get_value(rope, "truncate", bool, True),
            }
            return yarn | lengths | _magnitude(_yarn_magnitude(rope, yarn["factor"]))
        factors = {name: _numbers(rope, f"{name}_factor") for name in ("short", "long")}
        magnitude = get_value(rope, "attention_factor", float, None)
        if magnitude is None and factor is not None:
            magnitude = _longrope_magnitude(factor, original)
        return factors | lengths | {"length": length} | _magnitude(magnitude)

    def write(self, config: dict[str, Any], position: Mapping[str, Any]) -> None:
        """Set the keys of a config from the resolved position of a spec."""
        theta, scaling = position["theta"], position.get("scaling")
        kind = "default" if scaling is None else str(scaling["type"]).rpartition(":")[2]
        if kind not in self.types:
            raise ZooError(
                f"model.decoder.position.scaling.type is '{kind}'; transformers supports: "
                f"{', '.join(self.types)}"
            )
        rope: dict[str, Any] = {"rope_type": kind}
        if scaling is not None:
            rope |= _write_scaling(kind, scaling)
        if self.part is not None:
            rope["partial_rotary_factor"] = position.get("part", 1.0)
        if scaling is not None and kind == "longrope":
            config["max_position_embeddings"] = scaling["length"]
        if _LENGTH in config and _LENGTH in rope:  # it takes precedence
            config[_LENGTH] = rope[_LENGTH]
        # transformers 4 reads the first two, 5 the third.
        config |= {"rope_theta": theta, "rope_scaling": rope if scaling else None}
        config["rope_parameters"] = {**rope, "rope_theta": theta}


def _write_scaling(kind: str, scaling: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "factor": "factor", "low": "low_freq_factor", "high": "high_freq_factor",
        "original_length": _LENGTH, "fast": "beta_fast", "slow": "beta_slow",
        "truncate": "truncate", "magnitude": "attention_factor", "short": "short_factor",
        "long": "long_factor",
    }  # fmt: skip
    return {
        names[key]: value for key, value in scaling.items() if key in names and value is not None
    }


def _magnitude(value: float | None) -> dict[str, float]:
    return {} if value is None else {"magnitude": value}


def _yarn_magnitude(rope: Config, factor: float) -> float | None:
    """Return the factor of queries and keys; None for that of the paper."""
    given = get_value(rope, "attention_factor", float, None)
    scales = [get_value(rope, name, float, None) for name in ("mscale", "mscale_all_dim")]
    if given is not None or not all(scales):
        magnitude: float | None = given
        return magnitude
    one, all_dim = (1.0 if factor <= 1 else 0.1 * m * math.log(factor) + 1.0 for m in scales)
    return one / all_dim


def _longrope_magnitude(factor: float, original_length: int) -> float:
    return math.sqrt(1 + math.log(max(factor, 1.0)) / math.log(original_length))


def _numbers(rope: Config, key: str) -> list[float]:
    values = rope.get(key)
    if not isinstance(values, list) or any(type(value) not in (int, float) for value in values):
        raise config_error(key, values, "it should be a list of numbers")
    return [float(value) for value in values]
