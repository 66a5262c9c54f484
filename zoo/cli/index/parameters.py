"""The parameters of a component in the words that ``zoo show`` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from zoo.cli.index.records import ParameterRecord
from zoo.interfaces.signature import Parameter, Slot, parameters

_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def describe_parameters(cls: type[Any]) -> list[ParameterRecord]:
    """Return one row for each parameter of a component's constructor."""
    return [
        ParameterRecord(parameter.name, _describe_values(parameter), _describe_default(parameter))
        for parameter in parameters(cls)
    ]


def _describe_default(parameter: Parameter) -> str:
    """Return the default as it would be written in a spec."""
    if parameter.from_parent:
        return ""
    if parameter.required:
        return "required"
    value = parameter.default
    if isinstance(value, Mapping):
        value = dict(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _describe_values(parameter: Parameter) -> str:
    if parameter.from_parent:
        return "set by the parent, not in a spec"
    if parameter.slot:
        return _describe_slot(parameter.slot)
    return _describe_schema(parameter.json_schema())


def _describe_slot(slot: Slot) -> str:
    kind = getattr(slot.target, "kind", None)
    if kind is None:  # a class; a type is needed only for a registered subclass
        keys = ", ".join(p.name for p in parameters(slot.target) if not p.from_parent)
        one = several = f"{slot.target.__name__} (keys: {keys}), or a part"
    else:
        one, several = f"component of kind {kind}", f"components of kind {kind}"
    if slot.many:
        one = f"list of {several}"
    elif slot.named:
        one = f"mapping of names to {several}"
    return one + (" or null" if slot.optional else "")


def _describe_schema(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_describe_schema(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    bounds = [f"{sign} {schema[key]}" for key, sign in _LIMITS.items() if key in schema]
    name = str(schema.get("type", "any value"))
    return " ".join([name, " and ".join(bounds)]).strip()
