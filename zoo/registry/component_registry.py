"""(kind, name) -> component, from whatever plugins are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from zoo.errors import RegistryError, suggest, with_article
from zoo.interfaces import KINDS, Component, Entry
from zoo.interfaces.importer import Importer
from zoo.registry.discovery import Plugin, PluginFile, discover


@dataclass(frozen=True)
class ComponentRegistry:
    """What the installed plugins offer. Never changes once made."""

    plugins: Sequence[Plugin] = ()
    entries: Sequence[Entry] = ()
    specs: Mapping[str, Sequence[PluginFile]] = field(default_factory=dict)
    maps: Mapping[str, Sequence[PluginFile]] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ComponentRegistry:
        """The plugins of this environment, as far as ZOO_PLUGINS allows them."""
        plugins = discover(environ)
        entries = [entry for plugin in plugins for entry in plugin.entries]
        specs = _group_by_name(offer for plugin in plugins for offer in plugin.specs)
        maps = _group_by_name(offer for plugin in plugins for offer in plugin.maps)
        return cls(plugins, entries, specs, maps)

    def with_components(
        self, components: Iterable[type[Component]], *, plugin: str
    ) -> ComponentRegistry:
        """This registry and further components, for tests and notebooks."""
        more = [Entry(cls, plugin, plugin, "0") for cls in components]
        return replace(self, entries=[*self.entries, *more])

    def components(self, kind: str | None = None) -> list[Entry]:
        """All entries, or those of one kind, by kind and name."""
        if kind is not None and kind not in KINDS:
            raise RegistryError(f"no kind named '{kind}'{suggest(kind, KINDS)}")
        order = list(KINDS)
        chosen = [entry for entry in self.entries if kind in (None, entry.kind)]
        return sorted(chosen, key=lambda e: (order.index(e.kind), e.name, e.plugin))

    def get(self, kind: str, reference: str) -> Entry:
        """The one component a spec means by ``name`` or ``plugin:name``."""
        plugin, _, name = reference.rpartition(":")
        named = [e for e in self.entries if e.name == name and plugin in ("", e.plugin)]
        found = [e for e in named if e.kind == kind]
        if len(found) == 1:
            return found[0]
        available = self.components(kind)
        if found:
            raise RegistryError(self._ambiguous_message(kind, reference, found))
        raise RegistryError(self._missing_message(kind, reference, plugin, name, available))

    @property
    def importers(self) -> list[Importer]:
        """How models of other libraries come in, whoever offers it."""
        return [importer for plugin in self.plugins for importer in plugin.importers]

    def spec(self, name: str) -> Path:
        """The file of a spec that a plugin ships."""
        return self._find_file("spec", self.specs, name)

    def map(self, name: str) -> Path:
        """The file of a map that a plugin ships."""
        return self._find_file("map", self.maps, name)

    def _find_file(
        self, what: str, available: Mapping[str, Sequence[PluginFile]], name: str
    ) -> Path:
        files = available.get(name, [])
        if len(files) == 1:
            return files[0].path
        if files:
            who = " and ".join(f"plugin '{o.plugin}'" for o in files)
            raise RegistryError(
                f"{what} '{name}' is offered by {who}; give the file's path instead"
            )
        tail = suggest(name, available, list_command=f"zoo list --{what}s")
        raise RegistryError(f"no {what} named '{name}'{tail}{self._broken_plugins_message()}")

    @staticmethod
    def _ambiguous_message(kind: str, reference: str, found: Sequence[Entry]) -> str:
        who = " and ".join(f"plugin '{e.plugin}' (distribution {e.distribution})" for e in found)
        qualified = sorted({e.reference for e in found})
        if len(qualified) == len(found):
            way_out = f"write {' or '.join(repr(q) for q in qualified)}"
        else:
            way_out = "uninstall one of them, or choose with ZOO_PLUGINS"
        return f"{kind} '{reference}' is offered by {who}; {way_out}"

    def _missing_message(
        self, kind: str, reference: str, plugin: str, name: str, available: Sequence[Entry]
    ) -> str:
        elsewhere = [e for e in self.entries if e.name == name and plugin in ("", e.plugin)]
        if elsewhere:
            kinds = " and ".join(sorted({with_article(e.kind) for e in elsewhere}))
            names = ", ".join(sorted({e.name for e in available})) or "none"
            wanted = with_article(kind)
            return f"'{reference}' is {kinds}, but this slot takes {wanted} (available: {names})"
        tail = suggest(name, (e.name for e in available))
        if plugin and plugin not in {e.plugin for e in self.entries}:
            known = sorted({e.plugin for e in self.entries})
            tail = f": no plugin named '{plugin}' offers anything{suggest(plugin, known)}"
        return f"no {kind} named '{reference}'{tail}{self._broken_plugins_message()}"

    def _broken_plugins_message(self) -> str:
        names = ", ".join(f"'{p.name}' ({p.distribution})" for p in self.plugins if p.faults)
        return f"; plugins with faults: {names}, see 'zoo plugins'" if names else ""


def _group_by_name(files: Iterable[PluginFile]) -> dict[str, list[PluginFile]]:
    named: dict[str, list[PluginFile]] = {}
    for offer in files:
        named.setdefault(offer.name, []).append(offer)
    return named


@cache
def default_registry() -> ComponentRegistry:
    """The registry of this process's environment, made once."""
    return ComponentRegistry.from_environment()
