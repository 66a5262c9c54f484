"""JSON Schema of specs, from the signatures of the registered components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoo.interfaces import KINDS, Entry
from zoo.interfaces.signature import Slot, parameters
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import Sections

SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema(registry: ComponentRegistry) -> dict[str, Any]:
    """Return the JSON Schema of a spec for the registered components."""
    definitions: dict[str, Any] = {}
    for kind in KINDS:
        entries = registry.components(kind)
        definitions[kind] = {"anyOf": _entry_schemas(entries)}
        for entry in entries:
            definitions[_definition_name(entry)] = _component_schema(entry, registry, definitions)
    return {
        "$schema": SCHEMA_DRAFT,
        "title": "zoo spec",
        "if": {"required": ["extends"]},
        "then": _extends_schema(),
        "else": _object_schema(Sections, registry, definitions),
        "$defs": definitions,
    }


def _class_schema(
    cls: type, registry: ComponentRegistry, definitions: dict[str, Any]
) -> dict[str, Any]:
    """Return the schema of a slot of a class: its own parameters, or a registered subclass."""
    own, entries = _object_schema(cls, registry, definitions), registry.parts(cls)
    if hasattr(cls, "shorthand"):
        return {"anyOf": [own, own["properties"][cls.shorthand]]}
    if not entries:
        return own
    return {"anyOf": [own, *_entry_schemas(entries)]}


def _entry_schemas(entries: Sequence[Entry]) -> list[Any]:
    """Return the schemas of components given by name only, or with parameters."""
    names = sorted({e.name for e in entries} | {e.reference for e in entries})
    in_full = [{"$ref": f"#/$defs/{_definition_name(entry)}"} for entry in entries]
    return [{"enum": names} if names else False, *in_full]


def _extends_schema() -> dict[str, Any]:
    """Return the schema of a spec with `extends`, whose parts may omit keys of the base."""
    properties: dict[str, Any] = {
        parameter.name: True if parameter.slot else parameter.json_schema()
        for parameter in parameters(Sections)
    }
    properties["extends"] = {
        "type": "string",
        "description": "Name or path of the spec that this one changes.",
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _definition_name(entry: Entry) -> str:
    return f"{entry.kind}.{entry.plugin}.{entry.name}"


def _component_schema(
    entry: Entry, registry: ComponentRegistry, definitions: dict[str, Any]
) -> dict[str, Any]:
    schema = _object_schema(entry.cls, registry, definitions)
    schema["properties"] = {
        "type": {"enum": [entry.name, entry.reference]},
        **schema["properties"],
    }
    schema["required"] = ["type", *schema["required"]]
    return {"description": entry.summary, **schema}


def _object_schema(
    cls: type, registry: ComponentRegistry, definitions: dict[str, Any]
) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter in parameters(cls):
        if parameter.from_parent:
            continue
        if parameter.slot:
            shape = _slot_schema(parameter.slot, registry, definitions)
        else:
            shape = parameter.json_schema()
            definitions |= shape.pop("$defs", {})  # references are to those of the whole schema
        if not parameter.required and not parameter.slot:
            shape = {**shape, "default": parameter.default}
        properties[parameter.name] = shape
    return {
        "type": "object",
        "properties": properties,
        "required": [p.name for p in parameters(cls) if p.required and not p.from_parent],
        "additionalProperties": False,
    }


def _slot_schema(
    slot: Slot, registry: ComponentRegistry, definitions: dict[str, Any]
) -> dict[str, Any]:
    kinds = {interface: kind for kind, interface in KINDS.items()}
    if slot.target in kinds:
        name = kinds[slot.target]
    else:
        name = slot.target.__name__.lower()
        if name not in definitions:
            definitions[name] = {}  # defined first, in case it contains itself
            definitions[name] = _class_schema(slot.target, registry, definitions)
    one: dict[str, Any] = {"$ref": f"#/$defs/{name}"}
    if slot.many:
        return {"type": "array", "items": one}
    if slot.named:
        return {"type": "object", "additionalProperties": one}
    return {"anyOf": [one, {"type": "null"}]} if slot.optional else one
