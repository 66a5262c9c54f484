"""Build the index: load all plugins and describe them as plain data."""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zoo.cli.index.records import (
    ComponentRecord,
    FileRecord,
    ImporterRecord,
    Index,
    ModelRecord,
    ParameterRecord,
    PartRecord,
    PluginRecord,
)
from zoo.cli.panels import COMMAND_NAMES
from zoo.cli.wrapping import load_command
from zoo.errors import SpecError
from zoo.hub.catalogue import Catalogue, CatalogueEntry, load_catalogue, read_catalogue
from zoo.interfaces import KINDS, Acceleration, Entry, Part
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import Parameter, Slot, parameters
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.discovery import remove_taken_commands
from zoo.registry.plugin_call import PluginCall
from zoo.registry.plugin_data import Plugin, PluginFile
from zoo.spec.spec import Sections

_log = logging.getLogger(__name__)


def part_name(cls: type[Any]) -> str:
    """Return the name of a class in lower-case words joined by hyphens: ``feed-forward``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def describe_parts(entries: Iterable[Entry]) -> list[PartRecord]:
    """Return one record for each class that a slot of a component names, also in other parts."""
    users: dict[type[Any], list[str]] = {}
    for entry in entries:
        for part in _parts_of(entry.cls, set()):
            users.setdefault(part, []).append(f"{entry.kind} {entry.name}")
    records = []
    for part, used_by in sorted(users.items(), key=lambda item: part_name(item[0])):
        doc = inspect.getdoc(part) or ""
        try:
            rows = describe_parameters(part)
        except Exception as error:  # raised by a default value, for example
            _log.info("part '%s' cannot be described: %s", part.__name__, error)
            continue
        records.append(PartRecord(part_name(part), part.__name__, doc, rows, used_by))
    return records


def describe_sections() -> list[PartRecord]:
    """Return one record for a spec, for its sections, and for each key of a section that has keys
    of its own: ``spec``, ``train``, ``train.batch``."""
    found: list[tuple[str, type[Any]]] = [("spec", Sections)]
    records = []
    for name, cls in found:
        rows = describe_parameters(cls)
        for number, parameter in enumerate(parameters(cls)):
            if parameter.slot is None:
                continue
            path = parameter.name if cls is Sections else f"{name}.{parameter.name}"
            kind = getattr(parameter.slot.target, "kind", None)
            if kind is None:
                found.append((path, parameter.slot.target))
                rows[number] = replace(rows[number], values=f"see 'zoo show {path}'")
            elif cls is Sections:
                doc = f"{rows[number].values}; see 'zoo list --kind {kind}'"
                records.append(PartRecord(path, path, doc, [], []))
        records.append(PartRecord(name, cls.__name__, inspect.getdoc(cls) or "", rows, []))
    return records


def _parts_of(cls: type[Any], seen: set[type[Any]]) -> Iterator[type[Any]]:
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else None
        if target is not None and not hasattr(target, "kind") and target not in seen:
            seen.add(target)
            yield target
            yield from _parts_of(target, seen)


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


def build_index() -> tuple[Index, ComponentRegistry]:
    """Load all plugins; return the index and the registry that it describes."""
    registry = ComponentRegistry.from_environment()
    remove_taken_commands(registry.plugins, COMMAND_NAMES)
    for plugin in registry.plugins:
        _check_commands(plugin)
    try:
        catalogue = load_catalogue(registry=registry)
    except SpecError as error:  # in the catalogue of the zoo itself
        catalogue = Catalogue([], [str(error)])
    index = Index(
        list(KINDS),
        [_describe_plugin(plugin) for plugin in registry.plugins],
        [*describe_parts(registry.entries), *describe_sections()],
        [_describe_model(model) for model in catalogue.models],
        list(catalogue.problems),
    )
    return index, registry


def read_models(files: Sequence[Path]) -> list[ModelRecord]:
    """Return the models of further catalogue files."""
    return [
        _describe_model(model)
        for file in files
        for model in read_catalogue(file, ComponentRegistry())
    ]


def _check_commands(plugin: Plugin) -> None:
    """Record commands whose function cannot be imported or has an invalid signature."""
    for command in plugin.commands:
        try:
            with PluginCall(), contextlib.redirect_stdout(sys.stderr):
                load_command(command)
        except Exception as error:
            plugin.errors.append(
                f"command '{command.name}': {command.target} cannot be loaded: "
                f"{format_error(error)}"
            )
            plugin.traceback = plugin.traceback or traceback.format_exc()


def _describe_plugin(plugin: Plugin) -> PluginRecord:
    components = []
    for entry in plugin.entries:
        try:
            with PluginCall():
                components.append(_describe_component(entry))
        except Exception as error:  # raised by a default value, for example
            plugin.errors.append(
                f"{entry.kind} '{entry.name}' cannot be described: {format_error(error)}"
            )
    return PluginRecord(
        plugin.name,
        plugin.target,
        plugin.distribution,
        plugin.version,
        plugin.status,
        components,
        [_describe_file(file) for file in plugin.specs],
        [_describe_file(file) for file in plugin.maps],
        [_describe_file(file) for file in plugin.recipes],
        [_describe_importer(importer, plugin) for importer in plugin.importers],
        [str(path) for path in plugin.catalogues],
        plugin.commands,
        plugin.errors,
        plugin.conflicts,
        plugin.traceback,
    )


def _describe_component(entry: Entry) -> ComponentRecord:
    cls = entry.cls
    served = cls.serves if issubclass(cls, Acceleration) else None
    return ComponentRecord(
        entry.kind,
        entry.name,
        cls.version,
        entry.plugin,
        entry.distribution,
        entry.distribution_version,
        str(cls.paper),
        entry.summary,
        inspect.getdoc(cls) or "",
        describe_parameters(cls),
        [base.__name__ for base in cls.base_classes()] if issubclass(cls, Part) else (),
        f"{served.__module__}.{served.__qualname__}" if served else "",
        cls.methods() if issubclass(cls, Acceleration) else (),
    )


def _describe_importer(importer: Importer, plugin: Plugin) -> ImporterRecord:
    paragraph = (inspect.getdoc(type(importer)) or "").split("\n\n")[0]
    return ImporterRecord(importer.name, plugin.name, " ".join(paragraph.split()))


def _describe_file(file: PluginFile) -> FileRecord:
    return FileRecord(file.name, file.plugin, str(file.path))


def _describe_model(model: CatalogueEntry) -> ModelRecord:
    return ModelRecord(model.as_json(), model.search_text)
