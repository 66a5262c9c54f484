"""The data that discovery records about a plugin."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from zoo.interfaces import Entry
from zoo.interfaces.importer import Importer
from zoo.registry.command import Command


@dataclass(frozen=True)
class PluginFile:
    """A spec, a map or a recipe in a plugin's package."""

    name: str
    plugin: str
    path: Path


@dataclass
class Plugin:
    """One entry point: its distribution, what it provides, and the problems found."""

    name: str
    target: str
    distribution: str
    version: str
    enabled: bool = True
    entries: list[Entry] = field(default_factory=list)
    specs: list[PluginFile] = field(default_factory=list)
    maps: list[PluginFile] = field(default_factory=list)
    recipes: list[PluginFile] = field(default_factory=list)
    importers: list[Importer] = field(default_factory=list)
    catalogues: list[Path] = field(default_factory=list)
    folder_importers: list[str] = field(default_factory=list)
    importer_laws: list[str] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    traceback: str = ""

    @property
    def status(self) -> str:
        """``off``, ``error``, ``conflict`` or ``ok``."""
        if not self.enabled:
            return "off"
        return "error" if self.errors else "conflict" if self.conflicts else "ok"
