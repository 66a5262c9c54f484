"""JSON Schema of specs, from the signatures of the registered components."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zoo.interfaces import KINDS, Entry
from zoo.interfaces.signature import Parameter, Slot, parameters
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import Sections

SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "type": "string",
    "description": "Name or path of the spec that this one changes.",
}


def spec_schema(registry: ComponentRegistry) -> dict[str, Any]:
    """Return the JSON Schema of a spec for the registered components."""
    definitions: dict[str, Any] = {}
    whole = _SchemaWriter(registry, definitions).write()
    changes = _ChangesWriter(registry, definitions).write()
    changes["properties"]["extends"] = _EXTENDS
    return {
        "$schema": SCHEMA_DRAFT,
        "title": "zoo spec",
        "if": {"required": ["extends"]},
        "then": changes,
        "else": whole,
        "$defs": definitions,
    }


class _SchemaWriter:
    """Writes the schema of a whole spec.

    Args:
        registry: the components.
        definitions: of components, kinds and classes, by name; those written are added.
    """

    prefix = ""

    def __init__(self, registry: ComponentRegistry, definitions: dict[str, Any]) -> None:
        self.registry = registry
        self.definitions = definitions

    def write(self) -> dict[str, Any]:
        for kind in KINDS:
            entries = self.registry.components(kind)
            self.definitions[self.prefix + kind] = {"anyOf": self.components([], entries)}
            for entry in entries:
                self.definitions[self.name(entry)] = self.component(entry)
        return self.mapping(Sections)

    def name(self, entry: Entry) -> str:
        return f"{self.prefix}{entry.kind}.{entry.plugin}.{entry.name}"

    def components(self, classes: Sequence[type], entries: Sequence[Entry]) -> list[Any]:
        """Return the schemas of a slot: classes without a type, and components given by name only
        or with parameters."""
        names = sorted({e.name for e in entries} | {e.reference for e in entries})
        in_full = [{"$ref": f"#/$defs/{self.name(entry)}"} for entry in entries]
        by_name = [{"enum": names}] if names else [] if classes else [False]
        return [*self.without_type(classes, entries), *by_name, *in_full]

    def without_type(self, classes: Sequence[type], entries: Sequence[Entry]) -> list[Any]:
        return [self.mapping(cls) for cls in classes]

    def of_class(self, cls: type) -> dict[str, Any]:
        """Return the schema of a slot of a class: its own parameters, or a registered subclass."""
        found = self.components([cls], self.registry.parts(cls))
        if hasattr(cls, "shorthand"):
            found = [found[0], found[0]["properties"][cls.shorthand]]
        return {"anyOf": found} if len(found) > 1 else dict(found[0])

    def component(self, entry: Entry) -> dict[str, Any]:
        schema = self.mapping(entry.cls)
        schema["properties"] = {
            "type": {"enum": [entry.name, entry.reference]},
            **schema["properties"],
        }
        schema["required"] = ["type", *schema.get("required", ())]
        return {"description": entry.summary, **schema}

    def mapping(self, cls: type) -> dict[str, Any]:
        found = [p for p in parameters(cls) if not p.from_parent]
        return {
            "type": "object",
            "properties": {p.name: self.parameter(p) for p in found},
            "required": [p.name for p in found if p.required],
            "additionalProperties": False,
        }

    def parameter(self, parameter: Parameter) -> dict[str, Any]:
        if parameter.slot:
            return self.slot(parameter.slot)
        shape = self.plain(parameter)
        return shape if parameter.required else {**shape, "default": parameter.default}

    def plain(self, parameter: Parameter) -> dict[str, Any]:
        shape = parameter.json_schema()
        # References are to the definitions of the whole schema.
        self.definitions |= shape.pop("$defs", {})
        return shape

    def slot(self, slot: Slot) -> dict[str, Any]:
        one: dict[str, Any] = {"$ref": f"#/$defs/{self.prefix}{self.target(slot)}"}
        if slot.many:
            return {"type": "array", "items": one}
        if slot.named:
            return {"type": "object", "additionalProperties": one}
        return {"anyOf": [one, {"type": "null"}]} if slot.optional else one

    def target(self, slot: Slot) -> str:
        """Return the name of the definition of what a slot takes; write that of a class."""
        kinds = {interface: kind for kind, interface in KINDS.items()}
        if slot.target in kinds:
            return kinds[slot.target]
        name = slot.target.__name__.lower()
        if self.prefix + name not in self.definitions:
            self.definitions[self.prefix + name] = {}  # defined first, in case it contains itself
            self.definitions[self.prefix + name] = self.of_class(slot.target)
        return name


class _ChangesWriter(_SchemaWriter):
    """Writes the schema of a spec with `extends`, whose mappings are merged over those of the base.

    Any key may be missing. A mapping without a type changes a component whose type the base has, so
    it may have the keys of every component of the kind. Lists are replaced, so their entries are
    those of a whole spec.
    """

    prefix = "extends."

    def without_type(self, classes: Sequence[type], entries: Sequence[Entry]) -> list[Any]:
        found = [self.mapping(cls) for cls in (*classes, *(entry.cls for entry in entries))]
        return [_any_of_mappings(found)]

    def mapping(self, cls: type) -> dict[str, Any]:
        schema = super().mapping(cls)
        del schema["required"]
        return schema

    def parameter(self, parameter: Parameter) -> dict[str, Any]:
        return self.slot(parameter.slot) if parameter.slot else self.plain(parameter)

    def plain(self, parameter: Parameter) -> dict[str, Any]:
        shape = parameter.json_schema()
        inner = shape.pop("$defs", {})
        self.definitions |= {f"{self.prefix}{name}": self._changes(inner[name]) for name in inner}
        changed: dict[str, Any] = self._changes(shape)
        return changed

    def _changes(self, schema: Any) -> Any:
        """Return the schema of a plain value without the keys that a mapping must have."""
        if isinstance(schema, list):
            return [self._changes(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        kept = {
            key: self._changes(value)
            for key, value in schema.items()
            if key not in ("required", "minProperties", "default")
        }
        if isinstance(kept.get("$ref"), str):
            kept["$ref"] = kept["$ref"].replace("#/$defs/", f"#/$defs/{self.prefix}")
        return kept

    def slot(self, slot: Slot) -> dict[str, Any]:
        if slot.many:
            return _SchemaWriter(self.registry, self.definitions).slot(slot)
        return super().slot(slot)


def _any_of_mappings(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of a mapping whose keys are those of any of several schemas."""
    values: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        for key, value in schema["properties"].items():
            values.setdefault(key, {})[json.dumps(value, sort_keys=True)] = value
    found = {key: list(each.values()) for key, each in values.items()}
    return {
        "type": "object",
        "properties": {
            key: each[0] if len(each) == 1 else {"anyOf": each} for key, each in found.items()
        },
        "additionalProperties": False,
    }
