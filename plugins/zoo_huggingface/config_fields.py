"""What a key of a Hugging Face config says, and where in a spec that stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo import ZooError

MAX_BYTES = 1_000_000
REQUIRED = object()
"""The default of a key that a config must have."""

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Theirs to ours; the way back takes the first of several."""


def config_error(key: str, value: Any, rule: str) -> ZooError:
    """The error for a value that the zoo has no part for."""
    return ZooError(f"config.json: '{key}' is {_format_value(value)}; {rule}")


def _format_value(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True)
class ConfigField:
    """A key of the config and the places of the spec that say the same.

    `words` are the values that can be said, theirs to ours; `to_spec` and `back` compute where it
    takes more than another word.
    """

    key: str
    paths: str
    kind: type = int
    default: Any = REQUIRED
    words: Mapping[Any, Any] | None = None
    to_spec: Callable[[Any], Any] | None = None
    back: Callable[[Any], Any] | None = None
    least: int = 1
    """What a whole number must be at least; a symbol may be 0."""

    def read(self, config: Mapping[str, Any]) -> Any:
        """Our value for theirs."""
        value = get_value(config, self.key, self.kind, self.default)
        if type(value) is int and value < self.least:
            raise config_error(self.key, value, f"it should be at least {self.least}")
        if self.words is not None:
            if value not in self.words:
                known = ", ".join(str(word) for word in self.words)
                raise config_error(self.key, value, f"the zoo can express: {known}")
            return self.words[value]
        return value if self.to_spec is None else self.to_spec(value)

    def write(self, ours: Any) -> Any:
        """Their value for ours."""
        if self.words is not None:
            for theirs, word in self.words.items():
                if word == ours:
                    return theirs
            raise ZooError(f"'{self.paths.split()[0]}' is {ours!r}, for which they have no word")
        return ours if self.back is None else self.back(ours)


@dataclass(frozen=True)
class RequiredValue:
    """A key that must have one value, because the zoo has no part for others."""

    key: str
    value: Any
    reason: str
    default: Any = REQUIRED

    def check(self, config: Mapping[str, Any]) -> None:
        found = config.get(self.key, self.value if self.default is REQUIRED else self.default)
        if found != self.value:
            raise config_error(self.key, found, self.reason)


def get_value(config: Mapping[str, Any], key: str, kind: type, default: Any = REQUIRED) -> Any:
    """The value of a key, of the kind it should have; None only where that is the default."""
    value = config.get(key, default)
    if value is REQUIRED:
        raise ZooError(f"config.json has no '{key}'")
    if value is None and default is None:
        return None
    if kind is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is not kind:
        raise config_error(key, value, f"it should be {_TYPE_NAMES[kind]}")
    return value


_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def get_list(config: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    """The values of a key that has several; none if it is not set."""
    values = config.get(key) or []
    if not isinstance(values, list) or any(type(value) is not kind for value in values):
        raise config_error(key, values, f"it should be a list, each {_TYPE_NAMES[kind]}")
    return values


def table(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The keys and values under a key; none if it is not set."""
    values = config.get(key) or {}
    if not isinstance(values, Mapping):
        raise config_error(key, values, "it should hold keys and values")
    return values


def get_eos_ids(config: Mapping[str, Any]) -> list[int]:
    """The symbols that end a text, each once."""
    value = config.get("eos_token_id")
    found = value if isinstance(value, list) else [value]
    if not found or any(type(one) is not int for one in found):
        raise config_error(
            "eos_token_id", value, "a text of the zoo ends with a symbol, or with several"
        )
    return list(dict.fromkeys(found))


def get_eos_id(config: Mapping[str, Any]) -> int:
    """The symbol that ends a text, of which there may be one."""
    found = get_eos_ids(config)
    if len(found) > 1:
        raise config_error("eos_token_id", found, "a model with a source ends with one symbol")
    return found[0]


def read_json(path: Path) -> Any:
    """What a JSON file of a folder says."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ZooError(f"{path} has more than the {MAX_BYTES:,} bytes of a config")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ZooError(f"{path} cannot be read: {error}") from None


def at(data: Mapping[str, Any], path: str) -> Any:
    """What stands at a path of a spec, as ``model.encoder.layers``."""
    found: Any = data
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def put(data: dict[str, Any], path: str, value: Any) -> None:
    """Put a value there; the parts on the way are made."""
    *way, last = path.split(".")
    for key in way:
        data = data.setdefault(key, {})
    data[last] = value
