"""(kind, name) -> component, from whatever plugins are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from zoo.errors import RegistryError, article, suggest
from zoo.interfaces import KINDS, Component, Entry
from zoo.interfaces.importer import Importer
from zoo.registry.discovery import Offer, Plugin, discover


@dataclass(frozen=True)
class Registry:
    """What the installed plugins offer. Never changes once made."""

    plugins: Sequence[Plugin] = ()
    entries: Sequence[Entry] = ()
    specs: Mapping[str, Sequence[Offer]] = field(default_factory=dict)
    maps: Mapping[str, Sequence[Offer]] = field(default_factory=dict)

    @classmethod
    def installed(cls, environ: Mapping[str, str] | None = None) -> Registry:
        """The plugins of this environment, as far as ZOO_PLUGINS allows them."""
        plugins = discover(environ)
        entries = [entry for plugin in plugins for entry in plugin.entries]
        specs = _by_name(offer for plugin in plugins for offer in plugin.specs)
        maps = _by_name(offer for plugin in plugins for offer in plugin.maps)
        return cls(plugins, entries, specs, maps)

    def plus(self, components: Iterable[type[Component]], *, plugin: str) -> Registry:
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
        offered = self.components(kind)
        if found:
            raise RegistryError(self._ambiguous(kind, reference, found))
        raise RegistryError(self._missing(kind, reference, plugin, name, offered))

    @property
    def importers(self) -> list[Importer]:
        """How models of other libraries come in, whoever offers it."""
        return [importer for plugin in self.plugins for importer in plugin.importers]

    def spec(self, name: str) -> Path:
        """The file of a spec that a plugin ships."""
        return self._shipped("spec", self.specs, name)

    def map(self, name: str) -> Path:
        """The file of a map that a plugin ships."""
        return self._shipped("map", self.maps, name)

    def _shipped(self, what: str, offered: Mapping[str, Sequence[Offer]], name: str) -> Path:
        offers = offered.get(name, [])
        if len(offers) == 1:
            return offers[0].path
        if offers:
            who = " and ".join(f"plugin '{o.plugin}'" for o in offers)
            raise RegistryError(
                f"{what} '{name}' is offered by {who}; give the file's path instead"
            )
        tail = suggest(name, offered, by=f"zoo list --{what}s")
        raise RegistryError(f"no {what} named '{name}'{tail}{self._broken()}")

    @staticmethod
    def _ambiguous(kind: str, reference: str, found: Sequence[Entry]) -> str:
        who = " and ".join(f"plugin '{e.plugin}' (distribution {e.distribution})" for e in found)
        qualified = sorted({e.reference for e in found})
        if len(qualified) == len(found):
            way_out = f"write {' or '.join(repr(q) for q in qualified)}"
        else:
            way_out = "uninstall one of them, or choose with ZOO_PLUGINS"
        return f"{kind} '{reference}' is offered by {who}; {way_out}"

    def _missing(
        self, kind: str, reference: str, plugin: str, name: str, offered: Sequence[Entry]
    ) -> str:
        elsewhere = [e for e in self.entries if e.name == name and plugin in ("", e.plugin)]
        if elsewhere:
            kinds = " and ".join(sorted({article(e.kind) for e in elsewhere}))
            names = ", ".join(sorted({e.name for e in offered})) or "none"
            wanted = article(kind)
            return f"'{reference}' is {kinds}, but this slot takes {wanted} (available: {names})"
        tail = suggest(name, (e.name for e in offered))
        if plugin and plugin not in {e.plugin for e in self.entries}:
            known = sorted({e.plugin for e in self.entries})
            tail = f": no plugin named '{plugin}' offers anything{suggest(plugin, known)}"
        return f"no {kind} named '{reference}'{tail}{self._broken()}"

    def _broken(self) -> str:
        names = ", ".join(f"'{p.name}' ({p.distribution})" for p in self.plugins if p.faults)
        return f"; plugins with faults: {names}, see 'zoo plugins'" if names else ""


def _by_name(offers: Iterable[Offer]) -> dict[str, list[Offer]]:
    named: dict[str, list[Offer]] = {}
    for offer in offers:
        named.setdefault(offer.name, []).append(offer)
    return named


@cache
def default_registry() -> Registry:
    """The registry of this process's environment, made once."""
    return Registry.installed()
