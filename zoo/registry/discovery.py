"""Finds and loads plugins one by one; a broken one is recorded, never raised."""

from __future__ import annotations

import contextlib
import importlib.resources
import inspect
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from typing import Any

import pluggy

from zoo.about import DISTRIBUTION
from zoo.interfaces import KINDS, Component, Entry
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import parameters
from zoo.registry import hookspecs

_NAME = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*")


@dataclass(frozen=True)
class PluginFile:
    """A spec or a map that a plugin ships."""

    name: str
    plugin: str
    path: Path


@dataclass
class Plugin:
    """One entry point: where it comes from, what it offers, what is wrong with it."""

    name: str
    target: str
    distribution: str
    version: str
    enabled: bool = True
    entries: list[Entry] = field(default_factory=list)
    specs: list[PluginFile] = field(default_factory=list)
    maps: list[PluginFile] = field(default_factory=list)
    importers: list[Importer] = field(default_factory=list)
    catalogues: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    trace: str = ""

    @property
    def status(self) -> str:
        if not self.enabled:
            return "off"
        return "faulty" if self.faults else "clash" if self.conflicts else "ok"


def discover(environ: Mapping[str, str] | None = None) -> list[Plugin]:
    """Every entry point of the group, loaded where allowed."""
    allowed = (os.environ if environ is None else environ).get("ZOO_PLUGINS")
    plugins = []
    for name, distribution in _distributions().items():
        try:
            points = sorted(
                distribution.entry_points.select(group=hookspecs.GROUP), key=lambda p: p.name
            )
            version = distribution.version
        except Exception as error:
            if _declares_zoo_group(distribution):
                plugin = Plugin(name, "", name, "unknown")
                plugin.faults.append(f"its entry_points.txt cannot be read: {_format_error(error)}")
                plugins.append(plugin)
            continue
        for point in points:
            plugin = Plugin(point.name, point.value, name, version)
            plugin.enabled = _is_enabled(plugin, allowed)
            if plugin.enabled:
                _load(plugin, point)
            plugins.append(plugin)
    _report_conflicts(plugins)
    return plugins


def _distributions() -> dict[str, Distribution]:
    """By name, the zoo's own first; one found twice counts once, as for imports."""
    first: dict[str, Distribution] = {}
    for distribution in distributions():
        try:
            name = distribution.metadata["Name"]
        except Exception:
            continue  # metadata that is no text names nothing
        if name:
            first.setdefault(_normalize_name(name), distribution)
    return {name: first[name] for name in sorted(first, key=lambda n: (n != DISTRIBUTION, n))}


def _declares_zoo_group(distribution: Distribution) -> bool:
    try:
        return f"[{hookspecs.GROUP}]" in (distribution.read_text("entry_points.txt") or "")
    except Exception:
        return False


def _normalize_name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _is_enabled(plugin: Plugin, setting: str | None) -> bool:
    """ZOO_PLUGINS names entry points or distributions; 'none' leaves only the zoo's own."""
    if setting is None or plugin.distribution == DISTRIBUTION:
        return True
    names = {name.strip() for name in setting.split(",")}
    return plugin.name in names or plugin.distribution in {_normalize_name(n) for n in names if n}


def _load(plugin: Plugin, point: EntryPoint) -> None:
    # One manager a plugin: pluggy reports a bad hook for the whole manager at once.
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        # What a plugin prints must not end up in the output of --json.
        with contextlib.redirect_stdout(sys.stderr):
            module = point.load()
            manager.register(module, plugin.name)
            manager.check_pending()
            offered = manager.hook.zoo_components()
            importers = manager.hook.zoo_importers()
            listed = manager.hook.zoo_catalogues()
        _check_hook_markers(plugin, module, manager)
        for result in offered:
            _add_components(plugin, result)
        for result in importers:
            _add_importers(plugin, result)
        for result in listed:
            _add_catalogues(plugin, result)
        plugin.specs = _list_files(plugin, point, "specs")
        plugin.maps = _list_files(plugin, point, "maps")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, and the panics of compiled libraries
        plugin.faults.append(_format_error(error))
        plugin.trace = traceback.format_exc()
        return
    if manager.hook.zoo_components.get_hookimpls() and not offered and not plugin.faults:
        plugin.faults.append("zoo_components returned None, not a list of classes")


def _format_error(error: BaseException) -> str:
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    if isinstance(error, pluggy.PluginValidationError):
        lines = [" ".join(lines)]
    where = traceback.extract_tb(error.__traceback__)[-1]
    name = type(error).__name__
    return f"{name}: {lines[0] if lines else 'no message'} ({where.filename}:{where.lineno})"


def _check_hook_markers(plugin: Plugin, module: Any, manager: pluggy.PluginManager) -> None:
    """A function that looks like a hook but lacks the marker would be passed over in silence."""
    callers = manager.get_hookcallers(module) or ()
    marked = {
        implementation.function.__name__
        for caller in callers
        for implementation in caller.get_hookimpls()
    }
    for name, value in vars(module).items():
        if name.startswith("zoo_") and inspect.isfunction(value) and name not in marked:
            plugin.faults.append(f"function '{name}' is not marked with @zoo.plugin.hookimpl")
    if not marked and not plugin.faults:
        plugin.faults.append(f"{plugin.target} implements no hook of the zoo")


def _add_components(plugin: Plugin, result: object) -> None:
    if not isinstance(result, Sequence) or isinstance(result, str):
        plugin.faults.append(
            f"zoo_components returned {_short_repr(result)}, not a list of classes"
        )
        return
    for item in result:
        fault = validate_component(item)
        taken = {(e.kind, e.name) for e in plugin.entries}
        if fault is None and (item.kind, item.name) in taken:
            fault = f"{item.__name__}: {item.kind} '{item.name}' is offered twice"
        if fault is None:
            entry = Entry(item, plugin.name, plugin.distribution, plugin.version)
            plugin.entries.append(entry)
        else:
            plugin.faults.append(fault)


def _add_importers(plugin: Plugin, result: object) -> None:
    if not isinstance(result, Sequence) or isinstance(result, str):
        plugin.faults.append(
            f"zoo_importers returned {_short_repr(result)}, not a list of importers"
        )
        return
    for item in result:
        name = getattr(item, "name", None)
        if not isinstance(item, Importer):
            plugin.faults.append(f"{_short_repr(item)} is no importer")
        elif not isinstance(name, str) or not _NAME.fullmatch(name):
            plugin.faults.append(
                f"importer {type(item).__name__} has no name, but {_short_repr(name)}"
            )
        else:
            plugin.importers.append(item)


def _add_catalogues(plugin: Plugin, result: object) -> None:
    if not isinstance(result, Sequence) or isinstance(result, str):
        plugin.faults.append(f"zoo_catalogues returned {_short_repr(result)}, not a list of paths")
        return
    for item in result:
        if isinstance(item, (str, os.PathLike)) and os.path.isfile(item):
            plugin.catalogues.append(Path(os.fspath(item)))
        else:
            plugin.faults.append(f"zoo_catalogues names {_short_repr(item)}, which is no file")


def validate_component(item: object) -> str | None:
    """Why something is no component, or None if it is one."""
    if not isinstance(item, type) or not issubclass(item, Component):
        return f"{_short_repr(item)} is no component class"
    label = item.__name__
    kind = getattr(item, "kind", None)
    if not isinstance(kind, str) or kind not in KINDS or not issubclass(item, KINDS[kind]):
        return f"{label} implements none of the kinds ({', '.join(KINDS)})"
    if inspect.isabstract(item):
        lacking = ", ".join(sorted(getattr(item, "__abstractmethods__", ())))
        return f"{label} lacks methods of its kind '{item.kind}': {lacking}"
    name = getattr(item, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{label}.name is {_short_repr(name)}; a name is lower-case words joined by hyphens"
    if type(item.version) is not int or item.version < 1:
        return f"{label}.version is {_short_repr(item.version)}; a version is a whole number from 1"
    try:
        _validate_signatures(item)
    except TypeError as error:
        return str(error)
    return None


def _validate_signatures(cls: type[Any], parents: tuple[type[Any], ...] = ()) -> None:
    """TypeError if the constructor is no schema, nor those of plain classes in its slots."""
    parents = (*parents, cls)
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else cls
        if target not in parents and target not in KINDS.values():
            _validate_signatures(target, parents)


def _short_repr(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"an object whose repr raises {type(error).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _list_files(plugin: Plugin, point: EntryPoint, what: str) -> list[PluginFile]:
    module = sys.modules[point.module]
    if not hasattr(module, "__path__"):
        return []  # a single module has no folder of its own
    folder = Path(str(importlib.resources.files(module))) / what
    return [PluginFile(file.stem, plugin.name, file) for file in sorted(folder.glob("*.yaml"))]


def _report_conflicts(plugins: Sequence[Plugin]) -> None:
    """Two distributions with one entry-point name: both stay, each says so."""
    for plugin in plugins:
        for other in plugins:
            if (
                other is not plugin
                and other.name == plugin.name
                and plugin.enabled
                and other.enabled
            ):
                plugin.conflicts.append(
                    f"entry point '{plugin.name}' is also declared by "
                    f"distribution {other.distribution}"
                )
    taken: dict[tuple[str, str], list[Entry]] = {}
    for plugin in plugins:
        for entry in plugin.entries:
            taken.setdefault((entry.kind, entry.name), []).append(entry)
    for plugin in plugins:
        for entry in plugin.entries:
            for other_entry in taken[entry.kind, entry.name]:
                if other_entry is not entry:
                    remedy = f"specs must say '{entry.reference}'"
                    if entry.reference == other_entry.reference:
                        remedy = "uninstall one of them, or choose with ZOO_PLUGINS"
                    plugin.conflicts.append(
                        f"{entry.kind} '{entry.name}' is also offered by plugin "
                        f"'{other_entry.plugin}' (distribution {other_entry.distribution}); "
                        f"{remedy}"
                    )
