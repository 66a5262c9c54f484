"""Build the index: load all plugins and describe them as plain data."""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from zoo.cli.index.parameters import describe_parameters
from zoo.cli.index.parts import describe_parts, describe_sections
from zoo.cli.index.records import (
    ComponentRecord,
    FileRecord,
    ImporterRecord,
    Index,
    ModelRecord,
    PluginRecord,
)
from zoo.cli.loaded_command import load_command
from zoo.cli.panels import COMMAND_NAMES
from zoo.errors import SpecError
from zoo.hub.catalogue import Catalogue, CatalogueEntry, load_catalogue, read_catalogue
from zoo.interfaces import KINDS, Acceleration, Entry, Part
from zoo.interfaces.importer import Importer
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.discovery import remove_taken_commands
from zoo.registry.plugin_call import PluginCall
from zoo.registry.plugin_data import Plugin, PluginFile


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
