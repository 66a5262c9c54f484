"""The component registry: lookup from kind and name to a component class."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from zoo.errors import RegistryError, suggest, with_article
from zoo.interfaces import KINDS, Acceleration, Component, Entry, Part
from zoo.interfaces.contracts import OutputRequirement
from zoo.interfaces.importer import Importer
from zoo.registry.discovery import discover
from zoo.registry.lookup import find_file, group_by_name, select_kind
from zoo.registry.plugin_data import Plugin, PluginFile


@dataclass(frozen=True)
class ComponentRegistry:
    """The components, specs, maps, recipes and importers of the installed plugins. Immutable."""

    plugins: Sequence[Plugin] = ()
    entries: Sequence[Entry] = ()
    specs: Mapping[str, Sequence[PluginFile]] = field(default_factory=dict)
    maps: Mapping[str, Sequence[PluginFile]] = field(default_factory=dict)
    recipes: Mapping[str, Sequence[PluginFile]] = field(default_factory=dict)
    _by_kind: dict[str | None, list[Entry]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    accelerated: dict[type, type] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The classes of accelerated objects, by plain class; `zoo.accelerate` creates each once."""
    requirements: dict[type, list[OutputRequirement]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The outputs that objectives need, by class; the check of a spec finds each once."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ComponentRegistry:
        """Load the plugins of this environment that ``ZOO_PLUGINS`` enables."""
        plugins = discover(environ)
        entries = [entry for plugin in plugins for entry in plugin.entries]
        specs = group_by_name(file for plugin in plugins for file in plugin.specs)
        maps = group_by_name(file for plugin in plugins for file in plugin.maps)
        recipes = group_by_name(file for plugin in plugins for file in plugin.recipes)
        return cls(plugins, entries, specs, maps, recipes)

    def with_components(
        self, components: Iterable[type[Component]], *, plugin: str
    ) -> ComponentRegistry:
        """Return a copy of this registry with further components, for tests and notebooks."""
        more = [Entry(cls, plugin, plugin, "0") for cls in components]
        return replace(self, entries=[*self.entries, *more])

    def components(self, kind: str | None = None) -> list[Entry]:
        """Return all entries, or those of one kind, sorted by kind and name."""
        if kind not in self._by_kind:
            self._by_kind[kind] = select_kind(self.entries, kind, list(KINDS))
        return list(self._by_kind[kind])

    @cached_property
    def accelerations(self) -> Mapping[type, Sequence[type[Acceleration]]]:
        """The accelerations of each class, in the order in which they are tried."""
        found: dict[type, list[type[Acceleration]]] = {}
        for entry in self.components(Acceleration.kind):
            assert issubclass(entry.cls, Acceleration)
            found.setdefault(entry.cls.serves, []).append(entry.cls)
        return {serves: sorted(each, key=lambda cls: cls.order) for serves, each in found.items()}

    def parts(self, target: type) -> list[Entry]:
        """Return the registered subclasses of the class of a slot."""
        return [entry for entry in self.components(Part.kind) if issubclass(entry.cls, target)]

    def get(self, kind: str, reference: str, *, owner: Plugin | None = None) -> Entry:
        """Return the component named ``name`` or ``plugin:name``.

        Raises RegistryError if there is none or more than one. If more than one plugin provides a
        name, that of `owner`, the plugin that uses the name, is preferred, then that of its
        distribution.
        """
        return self.select(kind, reference, self.components(kind), owner=owner)

    def get_part(self, target: type, reference: str, *, owner: Plugin | None = None) -> Entry:
        """Return the registered subclass of the class of a slot; raises like `get`."""
        return self.select(target.__name__, reference, self.parts(target), owner=owner)

    def select(
        self, what: str, reference: str, available: Sequence[Entry], *, owner: Plugin | None = None
    ) -> Entry:
        """Return one of the available components by its name; raises like `get`.

        Args:
            what: what the components are, for the error.
        """
        plugin, _, name = reference.rpartition(":")
        found = [e for e in available if e.name == name and plugin in ("", e.plugin)]
        if owner and len(found) > 1:
            related = [e for e in found if e.distribution == owner.distribution]
            found = [e for e in related if e.plugin == owner.name] or related or found
        if len(found) == 1:
            return found[0]
        if found:
            raise RegistryError(self._ambiguous_message(what, reference, found))
        raise RegistryError(self._missing_message(what, reference, plugin, name, available))

    def owner_of(self, source: str | Importer) -> Plugin | None:
        """Return the plugin that provides the file of a spec or a recipe, or an importer."""
        path = os.path.realpath(source) if isinstance(source, str) else None
        for plugin in self.plugins:
            files = (os.path.realpath(file.path) for file in [*plugin.specs, *plugin.recipes])
            provided = plugin.importers if path is None else files
            if any(item is source or item == path for item in provided):
                return plugin
        return None

    @property
    def importers(self) -> list[Importer]:
        """The importers of all plugins."""
        return [importer for plugin in self.plugins for importer in plugin.importers]

    def spec(self, name: str) -> Path:
        """Return the file of a spec in a plugin's package."""
        return find_file("spec", self.specs, name, self._plugin_problems_hint())

    def map(self, name: str) -> Path:
        """Return the file of a map in a plugin's package."""
        return find_file("map", self.maps, name, self._plugin_problems_hint())

    def recipe(self, name: str) -> Path:
        """Return the file of a recipe in a plugin's package."""
        hint = self._plugin_problems_hint()
        return find_file("recipe", self.recipes, name, hint, list_command="zoo reproduce --list")

    @staticmethod
    def _ambiguous_message(kind: str, reference: str, found: Sequence[Entry]) -> str:
        owners = (f"plugin '{e.plugin}' (distribution {e.distribution})" for e in found)
        qualified = sorted({e.reference for e in found})
        if len(qualified) == len(found):
            remedy = f"use {' or '.join(repr(q) for q in qualified)}"
        else:
            remedy = "uninstall one of them, or select one with ZOO_PLUGINS"
        return f"{kind} '{reference}' is provided by {' and '.join(owners)}; {remedy}"

    def _missing_message(
        self, kind: str, reference: str, plugin: str, name: str, available: Sequence[Entry]
    ) -> str:
        elsewhere = [e for e in self.entries if e.name == name and plugin in ("", e.plugin)]
        if elsewhere:
            kinds = " and ".join(sorted({with_article(e.kind) for e in elsewhere}))
            names = ", ".join(sorted({e.name for e in available})) or "none"
            expected = with_article(kind)
            return f"'{reference}' is {kinds}, but this slot takes {expected} (available: {names})"
        tail = suggest(name, (e.name for e in available))
        if plugin and plugin not in {e.plugin for e in self.entries}:
            known = sorted({e.plugin for e in self.entries})
            tail = f": no plugin named '{plugin}' has components{suggest(plugin, known)}"
        return f"no {kind} named '{reference}'{tail}{self._plugin_problems_hint()}"

    def _plugin_problems_hint(self) -> str:
        names = ", ".join(f"'{p.name}' ({p.distribution})" for p in self.plugins if p.errors)
        return f"; plugins with problems: {names}, see 'zoo plugins'" if names else ""


@cache
def default_registry() -> ComponentRegistry:
    """Return the registry of this environment, created once per process."""
    return ComponentRegistry.from_environment()
