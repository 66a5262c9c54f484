"""Swapped values of a spec: their paths and names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.errors import Place, Problem, SpecError, suggest
from zoo.spec.document import read_option

EXAMPLE = "decoder.attention.scorer=additive,dot"
_OPENING, _CLOSING, _QUOTES = "{[", "}]", "\"'"


def parse_swap(text: str) -> tuple[str, list[Any]]:
    """Parse ``PATH=VALUE,VALUE``; commas in braces, brackets and quotes do not separate values.

    >>> parse_swap("decoder.attention.scorer=dot,{type: additive, hidden: 8}")
    ('decoder.attention.scorer', ['dot', {'type': 'additive', 'hidden': 8}])
    """
    path, equals, values = text.partition("=")
    label = f"--swap {text}"
    parts = _split(values)
    if not equals or not all(path.strip().split(".")) or not all(part.strip() for part in parts):
        message = f"should be PATH=VALUE,VALUE, for example {EXAMPLE}"
        raise SpecError([Problem(message, place=Place(label))])
    read = [read_option(part, label) for part in parts]
    problems = [problem for document in read for problem in document.problems]
    if problems:
        raise SpecError(problems)
    return path.strip(), [document.data for document in read]


def _split(text: str) -> list[str]:
    parts, start, depth, quote = [], 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def find_path(path: str, resolved: Mapping[str, Any], place: Place | None) -> str:
    """Return the path from the root of the spec; one that starts in the model is accepted.

    Args:
        path: ``model.decoder.attention.scorer``, or without ``model``.
        resolved: the spec with all defaults.
        place: where the path is written, for the error.

    Raises:
        SpecError: if the spec has no such path.
    """
    keys = path.split(".")
    if keys[0] not in resolved and keys[0] in resolved["model"]:
        keys.insert(0, "model")
    current: Any = resolved
    for depth, key in enumerate(keys):
        at = ".".join(keys[:depth])
        if not isinstance(current, Mapping):
            message = f"has no keys, because its value is {json.dumps(current)}"
            raise SpecError([Problem(f"'{at}' {message}", path, place)])
        if key not in current:
            known = [*current] if at else [*current, *resolved["model"]]
            where = f"'{at}' has no key '{key}'" if at else f"the spec has no key '{key}'"
            raise SpecError([Problem(f"{where}{suggest(key, known)}", path, place)])
        current = current[key]
    return ".".join(keys)


def as_change(path: str, value: Any, resolved: Mapping[str, Any]) -> str:
    """Return an override of the spec; a name in place of a component selects its type.

    The parameters of a component are kept if its type stays the same.
    """
    current = _value_at(path, resolved)
    if isinstance(value, str) and isinstance(current, Mapping) and "type" in current:
        value = {"type": value}
    return f"{path}={json.dumps(value, ensure_ascii=False)}"


def is_current(path: str, value: Any, resolved: Mapping[str, Any]) -> bool:
    """Return whether the spec has a value already; a name is that of a component."""
    current = _value_at(path, resolved)
    if isinstance(value, str) and isinstance(current, Mapping) and "type" in current:
        return value in (current["type"], current["type"].rpartition(":")[2])
    return bool(value == current)


def _value_at(path: str, resolved: Mapping[str, Any]) -> Any:
    current: Any = resolved
    for key in path.split("."):
        current = current[key]
    return current


def describe_value(value: Any) -> str:
    """Return a short name of a value: ``additive``, ``additive (hidden 8)``, ``8``."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    rest = [f"{key} {describe_value(item)}" for key, item in value.items() if key != "type"]
    name = value.get("type")
    if name is None:
        return ", ".join(rest)
    return f"{name} ({', '.join(rest)})" if rest else str(name)


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the last key of each path, or the whole path if two have the same last key."""
    last = [path.rpartition(".")[2] for path in paths]
    return {
        path: name if last.count(name) == 1 else path
        for path, name in zip(paths, last, strict=True)
    }
