"""Fields of a Hugging Face config, and the spec keys they correspond to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo import ZooError

MAX_BYTES = 1_000_000
MAX_VALUES = 2_000_000
MAX_OBJECTS = 500_000
"""Maximum size of a JSON file. The tokenizer of Gemma 3 has about 1.8 million values."""
REQUIRED = object()
"""The default of a key that a config must have."""


def config_error(key: str, value: Any, reason: str, file: str = "config.json") -> ZooError:
    """Return the error for an unsupported value."""
    return ZooError(f"{file}: '{key}' is {format_value(value)}; {reason}")


def format_value(value: Any) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True)
class ConfigField:
    """A key of the config and the corresponding keys of the spec.

    Args:
        key: the key of the config.
        paths: the paths in the spec, separated by spaces; an export reads the first.
        value_type: the type of the config value.
        default: the value if the config does not have the key.
        value_map: supported config values and their spec values.
        to_spec: computes the spec value from the config value.
        to_config: computes the config value from the spec value.
        minimum: the smallest integer allowed; token IDs may be 0.
    """

    key: str
    paths: str
    value_type: type = int
    default: Any = REQUIRED
    value_map: Mapping[Any, Any] | None = None
    to_spec: Callable[[Any], Any] | None = None
    to_config: Callable[[Any], Any] | None = None
    minimum: int = 1

    def read(self, config: Mapping[str, Any]) -> Any:
        """Return the spec value for a config."""
        value = get_value(config, self.key, self.value_type, self.default)
        if type(value) is int and value < self.minimum:
            raise config_error(self.key, value, f"it should be at least {self.minimum}")
        if self.value_map is not None:
            if value not in self.value_map:
                supported = ", ".join(map(str, self.value_map))
                raise config_error(self.key, value, f"supported values: {supported}")
            return self.value_map[value]
        return value if self.to_spec is None else self.to_spec(value)

    def write(self, spec_value: Any, original: Any = None) -> Any:
        """Return the config value for a spec value; of several, the original one."""
        if spec_value is None:
            return None
        if self.value_map is not None:
            names = [name for name, mapped in self.value_map.items() if mapped == spec_value]
            if names:
                return original if original in names else names[0]
            supported = ", ".join(sorted({str(mapped) for mapped in self.value_map.values()}))
            raise ZooError(
                f"'{self.paths.split()[0]}' is {spec_value!r}, which transformers does not "
                f"support (supported: {supported})"
            )
        return spec_value if self.to_config is None else self.to_config(spec_value)


@dataclass(frozen=True)
class RequiredValue:
    """A key that must have one value, because the zoo supports no other."""

    key: str
    value: Any
    reason: str

    def check(self, config: Mapping[str, Any]) -> None:
        """Raise ZooError if a config has another value."""
        value = config.get(self.key, self.value)
        if value != self.value:
            raise config_error(self.key, value, self.reason)


def get_value(
    config: Mapping[str, Any],
    key: str,
    value_type: type,
    default: Any = REQUIRED,
    file: str = "config.json",
) -> Any:
    """Return the value of a key and check its type; None is allowed if it is the default."""
    value = config.get(key, default)
    if value is REQUIRED:
        raise ZooError(f"{file} has no '{key}'")
    if value is None and default is None:
        return None
    if value_type is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is not value_type:
        raise config_error(key, value, f"it should be {_TYPE_NAMES[value_type]}", file)
    return value


_TYPE_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}


def get_list(config: Mapping[str, Any], key: str, value_type: type) -> list[Any]:
    """Return the list under a key, empty if it is not set."""
    values = config.get(key) or []
    if not isinstance(values, list) or any(type(value) is not value_type for value in values):
        raise config_error(key, values, f"it should be a list, each item {_TYPE_NAMES[value_type]}")
    return values


def get_mapping(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping under a key, empty if it is not set."""
    values = config.get(key) or {}
    if not isinstance(values, Mapping):
        raise config_error(key, values, "it should be a mapping")
    return values


def get_eos_ids(config: Mapping[str, Any], default: Any = None) -> list[int]:
    """Return the end token IDs without duplicates, empty for a model without an end token."""
    value = config.get("eos_token_id", default)
    if value is None:
        return []
    ids = value if isinstance(value, list) else [value]
    if not ids or any(type(token_id) is not int for token_id in ids):
        raise config_error(
            "eos_token_id", value, "it should be a token ID or a non-empty list of token IDs"
        )
    return list(dict.fromkeys(ids))


def get_eos_id(config: Mapping[str, Any]) -> int:
    """Return the end token ID of a model that supports only one."""
    ids = get_eos_ids(config)
    if len(ids) != 1:
        found = config.get("eos_token_id")
        raise config_error("eos_token_id", found, "a seq2seq model has exactly one end token")
    return ids[0]


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Return the content of a JSON file."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise ZooError(f"{path} has {size:,} bytes; at most {max_bytes:,} are allowed")
        text = path.read_text(encoding="utf-8")
        # Before parsing: an empty object takes 64 bytes of memory and 3 bytes of the file.
        if text.count(",") + text.count("[") > MAX_VALUES or text.count("{") > MAX_OBJECTS:
            raise ZooError(f"{path} has more than {MAX_VALUES:,} values or {MAX_OBJECTS:,} objects")
        return json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ZooError(f"{path} cannot be read: {error}") from None


def get_path(data: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of a spec, such as ``model.encoder.layers``, or None."""
    value: Any = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def set_path(data: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path of a spec; missing parts are created."""
    *parents, last = path.split(".")
    for key in parents:
        data = data.setdefault(key, {})
    data[last] = value
