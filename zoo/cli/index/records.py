"""The content of the index: what installed plugins provide, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zoo.registry.command import Command
from zoo.registry.lookup import group_by_name, select_kind


@dataclass(frozen=True)
class ParameterRecord:
    """A row of the table of parameters that ``zoo show`` prints."""

    name: str
    values: str
    default: str


@dataclass(frozen=True)
class ComponentRecord:
    """A component, as ``zoo list`` and ``zoo show`` print it."""

    kind: str
    name: str
    version: int
    plugin: str
    distribution: str
    distribution_version: str
    paper: str
    summary: str
    doc: str
    parameters: Sequence[ParameterRecord]
    slots: Sequence[str] = ()
    """For a part, the classes in whose slots it can be used."""
    serves: str = ""
    """For an acceleration, the class it serves, with its module."""
    methods: Sequence[str] = ()
    """For an acceleration, the methods it replaces."""

    def replaced(self) -> str:
        """Return the methods that an acceleration replaces, such as 'Attention.forward'."""
        class_name = self.serves.rpartition(".")[2]
        return ", ".join(f"{class_name}.{method}" for method in self.methods)

    def as_json(self) -> dict[str, Any]:
        """Return the fields that ``zoo list --json`` prints."""
        keys = ("kind", "name", "version", "plugin", "distribution", "paper", "summary")
        row = {key: getattr(self, key) for key in keys}
        return row | {"serves": self.replaced()} if self.serves else row


@dataclass(frozen=True)
class PartRecord:
    """A class that a slot names, such as `Attention`, as ``zoo show`` prints it."""

    name: str
    class_name: str
    doc: str
    parameters: Sequence[ParameterRecord]
    used_by: Sequence[str]
    """The components with a slot for it, as 'kind name'; empty for the sections of a spec."""


@dataclass(frozen=True)
class ImporterRecord:
    """An importer, as ``zoo list --importers`` prints it."""

    name: str
    plugin: str
    summary: str


@dataclass(frozen=True)
class FileRecord:
    """A spec, a map or a recipe of a plugin."""

    name: str
    plugin: str
    file: str

    @property
    def path(self) -> Path:
        return Path(self.file)


@dataclass(frozen=True)
class PluginRecord:
    """A plugin, as ``zoo plugins`` prints it."""

    name: str
    target: str
    distribution: str
    version: str
    status: str
    components: Sequence[ComponentRecord] = ()
    specs: Sequence[FileRecord] = ()
    maps: Sequence[FileRecord] = ()
    recipes: Sequence[FileRecord] = ()
    importers: Sequence[ImporterRecord] = ()
    catalogues: Sequence[str] = ()
    commands: Sequence[Command] = ()
    errors: Sequence[str] = ()
    conflicts: Sequence[str] = ()
    traceback: str = ""


@dataclass(frozen=True)
class ModelRecord:
    """A published model, as ``zoo catalogue`` prints it, and the text that it searches."""

    data: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class Index:
    """Everything that ``zoo list``, ``show``, ``plugins``, ``catalogue`` and ``--help`` print."""

    kinds: Sequence[str]
    plugins: Sequence[PluginRecord]
    parts: Sequence[PartRecord] = ()
    models: Sequence[ModelRecord] = ()
    catalogue_problems: Sequence[str] = field(default=())

    def components(self, kind: str | None = None) -> list[ComponentRecord]:
        """Return all components, or those of one kind, sorted by kind and name."""
        every = (component for plugin in self.plugins for component in plugin.components)
        return select_kind(every, kind, self.kinds)

    @property
    def specs(self) -> dict[str, list[FileRecord]]:
        """The specs of all plugins, by name."""
        return group_by_name(file for plugin in self.plugins for file in plugin.specs)

    @property
    def maps(self) -> dict[str, list[FileRecord]]:
        """The maps of all plugins, by name."""
        return group_by_name(file for plugin in self.plugins for file in plugin.maps)

    @property
    def recipes(self) -> dict[str, list[FileRecord]]:
        """The recipes of all plugins, by name."""
        return group_by_name(file for plugin in self.plugins for file in plugin.recipes)

    @property
    def importers(self) -> list[ImporterRecord]:
        """The importers of all plugins, sorted by name."""
        every = (importer for plugin in self.plugins for importer in plugin.importers)
        return sorted(every, key=lambda importer: (importer.name, importer.plugin))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Index:
        """Return the index that `to_json` wrote."""
        return cls(
            data["kinds"],
            [_plugin(row) for row in data["plugins"]],
            [PartRecord(**_with_parameters(row)) for row in data["parts"]],
            [ModelRecord(**row) for row in data["models"]],
            data["catalogue_problems"],
        )


def _plugin(row: dict[str, Any]) -> PluginRecord:
    row["components"] = [ComponentRecord(**_with_parameters(part)) for part in row["components"]]
    row["importers"] = [ImporterRecord(**importer) for importer in row["importers"]]
    row["specs"] = [FileRecord(**file) for file in row["specs"]]
    row["maps"] = [FileRecord(**file) for file in row["maps"]]
    row["recipes"] = [FileRecord(**file) for file in row["recipes"]]
    row["commands"] = [Command(**command) for command in row["commands"]]
    return PluginRecord(**row)


def _with_parameters(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "parameters": [ParameterRecord(**each) for each in row["parameters"]]}
