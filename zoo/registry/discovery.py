"""Find plugins and load each of them; problems are recorded on the plugin, never raised."""

from __future__ import annotations

import contextlib
import importlib.resources
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

import pluggy

from zoo.about import DISTRIBUTION
from zoo.interfaces import KINDS, Component, Entry, Part
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import parameters
from zoo.registry import hookspecs
from zoo.registry.command import Command
from zoo.registry.distributions import GROUP, normalize_name, plugin_distributions
from zoo.registry.plugin_call import PluginCall, PluginExit
from zoo.registry.plugin_data import Plugin, PluginFile

NAME = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*")
"""The names that components and importers may have."""


def validate_component(item: object) -> str | None:
    """Return why an object is not a component class, or None if it is one."""
    if not isinstance(item, type) or not issubclass(item, Component):
        return f"{short_repr(item)} is not a component class"
    label = item.__name__
    kind = getattr(item, "kind", None)
    if not isinstance(kind, str) or kind not in KINDS or not issubclass(item, KINDS[kind]):
        return f"{label} does not subclass an interface of zoo.plugin ({', '.join(KINDS)})"
    if issubclass(item, Part) and not item.base_classes():
        return f"{label} is a part, but does not subclass the class of a slot, such as Attention"
    if inspect.isabstract(item):
        missing = ", ".join(sorted(getattr(item, "__abstractmethods__", ())))
        return f"{label} does not implement methods of its kind '{item.kind}': {missing}"
    name = getattr(item, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{label}.name is {short_repr(name)}; expected lower-case words joined by hyphens"
    if type(item.version) is not int or item.version < 1:
        return f"{label}.version is {short_repr(item.version)}; expected an integer of at least 1"
    try:
        _validate_signatures(item)
    except TypeError as error:
        return str(error)
    return None


def _validate_signatures(cls: type[Any], parents: tuple[type[Any], ...] = ()) -> None:
    """Raise TypeError if a constructor is not a schema, here or in a plain class of a slot."""
    parents = (*parents, cls)
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else cls
        if target not in parents and target not in KINDS.values():
            _validate_signatures(target, parents)


def short_repr(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters; a placeholder if ``repr`` raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"an object whose repr raises {type(error).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def report_conflicts(plugins: Sequence[Plugin]) -> None:
    """Record, on each plugin, its entry point and components that others also declare."""
    for plugin in plugins:
        for other in plugins:
            same = other is not plugin and other.name == plugin.name
            if same and plugin.enabled and other.enabled:
                plugin.conflicts.append(
                    f"entry point '{plugin.name}' is also declared by "
                    f"distribution {other.distribution}"
                )
    by_name: dict[tuple[str, str], list[Entry]] = {}
    for plugin in plugins:
        for entry in plugin.entries:
            by_name.setdefault((entry.kind, entry.name), []).append(entry)
    for plugin in plugins:
        for entry in plugin.entries:
            for other_entry in by_name[entry.kind, entry.name]:
                if other_entry is not entry:
                    plugin.conflicts.append(_component_conflict(entry, other_entry))


def _component_conflict(entry: Entry, other: Entry) -> str:
    remedy = f"specs must write '{entry.reference}'"
    if entry.reference == other.reference:
        remedy = "uninstall one of them, or select one with ZOO_PLUGINS"
    return (
        f"{entry.kind} '{entry.name}' is also provided by plugin '{other.plugin}' "
        f"(distribution {other.distribution}); {remedy}"
    )


def remove_taken_commands(plugins: Sequence[Plugin], reserved: Collection[str]) -> None:
    """Remove commands whose name is reserved or used by an earlier plugin, and record them."""
    reasons = dict.fromkeys(reserved, "it is the name of a built-in command")
    for plugin in plugins:
        accepted = []
        for command in plugin.commands:
            if command.name in reasons:
                plugin.conflicts.append(
                    f"command '{command.name}' is ignored: {reasons[command.name]}; rename it"
                )
                continue
            reasons[command.name] = (
                f"plugin '{plugin.name}' (distribution {plugin.distribution}) has the same command"
            )
            accepted.append(command)
        plugin.commands = accepted


def discover(environ: Mapping[str, str] | None = None) -> list[Plugin]:
    """Return a record of every installed plugin, loaded if ``ZOO_PLUGINS`` enables it."""
    setting = (os.environ if environ is None else environ).get("ZOO_PLUGINS")
    plugins = []
    for name, distribution in plugin_distributions().items():
        try:
            points = sorted(distribution.entry_points.select(group=GROUP), key=lambda p: p.name)
        except Exception as error:
            plugin = Plugin(name, "", name, "unknown")
            plugin.errors.append(f"entry_points.txt cannot be read: {_format_error(error)}")
            plugins.append(plugin)
            continue
        version = _version_of(distribution)
        for point in points:
            plugin = Plugin(point.name, point.value, name, version)
            plugin.enabled = _is_enabled(plugin, setting)
            if plugin.enabled:
                _load(plugin, point)
            plugins.append(plugin)
    report_conflicts(plugins)
    return plugins


def _version_of(distribution: Distribution) -> str:
    try:
        return distribution.metadata["Version"] or "unknown"
    except Exception:  # METADATA is missing, or not text
        return "unknown"


def _is_enabled(plugin: Plugin, setting: str | None) -> bool:
    """ZOO_PLUGINS names entry points or distributions; 'none' disables all third-party ones."""
    if setting is None or plugin.distribution == DISTRIBUTION:
        return True
    names = {name.strip() for name in setting.split(",")}
    return plugin.name in names or plugin.distribution in {normalize_name(n) for n in names if n}


def _load(plugin: Plugin, point: EntryPoint) -> None:
    # One manager per plugin, because pluggy checks the hooks of all its plugins together.
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        with PluginCall():
            # Output of a plugin must not mix with the output of --json.
            with contextlib.redirect_stdout(sys.stderr):
                module = point.load()
                manager.register(module, plugin.name)
                manager.check_pending()
                results = {hook: getattr(manager.hook, hook)() for hook in _HOOK_HANDLERS}
            _check_hook_markers(plugin, module, manager)
            for hook in _HOOK_HANDLERS:
                _add_results(plugin, hook, results[hook])
        plugin.specs = _list_files(plugin, point, "specs")
        plugin.maps = _list_files(plugin, point, "maps")
        plugin.recipes = _list_files(plugin, point, "reproductions")
    except Exception as error:
        plugin.errors.append(_format_error(error))
        plugin.traceback = traceback.format_exc()
        return
    components = manager.hook.zoo_components.get_hookimpls()
    if components and not results["zoo_components"] and not plugin.errors:
        plugin.errors.append("zoo_components returned None, not a list of classes")


def _add_results(plugin: Plugin, hook: str, results: Sequence[Any]) -> None:
    expected, add = _HOOK_HANDLERS[hook]
    for result in results:
        if isinstance(result, Sequence) and not isinstance(result, str):
            for item in result:
                add(plugin, item)
        else:
            plugin.errors.append(f"{hook} returned {short_repr(result)}, not a list of {expected}")


def _format_error(error: BaseException) -> str:
    if isinstance(error, PluginExit) and error.__cause__ is not None:
        error = error.__cause__
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
    """Record functions named like a hook but not decorated; pluggy ignores them silently."""
    callers = manager.get_hookcallers(module) or ()
    marked = {
        implementation.function.__name__
        for caller in callers
        for implementation in caller.get_hookimpls()
    }
    for name, value in vars(module).items():
        if name.startswith("zoo_") and inspect.isfunction(value) and name not in marked:
            plugin.errors.append(f"function '{name}' is not marked with @zoo.plugin.hookimpl")
    if not marked and not plugin.errors:
        plugin.errors.append(f"{plugin.target} does not implement any plugin hook")


def _add_component(plugin: Plugin, item: Any) -> None:
    problem = validate_component(item)
    names = {(e.kind, e.name) for e in plugin.entries}
    if problem is None and (item.kind, item.name) in names:
        problem = f"{item.__name__}: {item.kind} '{item.name}' is listed twice in zoo_components"
    if problem is None:
        plugin.entries.append(Entry(item, plugin.name, plugin.distribution, plugin.version))
    else:
        plugin.errors.append(problem)


def _add_importer(plugin: Plugin, item: Any) -> None:
    name = getattr(item, "name", None)
    if not isinstance(item, Importer):
        plugin.errors.append(f"{short_repr(item)} is not an instance of zoo.plugin.Importer")
    elif not isinstance(name, str) or not NAME.fullmatch(name):
        plugin.errors.append(
            f"{type(item).__name__}.name is {short_repr(name)}; expected lower-case words "
            "joined by hyphens"
        )
    else:
        plugin.importers.append(item)


def _add_catalogue(plugin: Plugin, item: Any) -> None:
    if isinstance(item, (str, os.PathLike)) and os.path.isfile(item):
        plugin.catalogues.append(Path(os.fspath(item)))
    else:
        plugin.errors.append(f"zoo_catalogues returned {short_repr(item)}, which is not a file")


def _add_folder_importer(plugin: Plugin, item: Any) -> None:
    _add_module(plugin, plugin.folder_importers, "zoo_folder_importers", item)


def _add_importer_laws(plugin: Plugin, item: Any) -> None:
    _add_module(plugin, plugin.importer_laws, "zoo_importer_laws", item)


def _add_module(plugin: Plugin, modules: list[str], hook: str, item: Any) -> None:
    if isinstance(item, str) and all(part.isidentifier() for part in item.split(".")):
        modules.append(item)
    else:
        plugin.errors.append(f"{hook} returned {short_repr(item)}, which is not a module's name")


def _add_command(plugin: Plugin, item: Any) -> None:
    problem = (
        item.validate()
        if isinstance(item, Command)
        else f"{short_repr(item)} is not a zoo.command.Command"
    )
    if problem is None:
        plugin.commands.append(item)
    else:
        plugin.errors.append(problem)


_HOOK_HANDLERS: dict[str, tuple[str, Callable[[Plugin, Any], None]]] = {
    "zoo_components": ("classes", _add_component),
    "zoo_importers": ("importers", _add_importer),
    "zoo_catalogues": ("paths", _add_catalogue),
    "zoo_folder_importers": ("names of modules", _add_folder_importer),
    "zoo_importer_laws": ("names of modules", _add_importer_laws),
    "zoo_commands": ("commands", _add_command),
}


def _list_files(plugin: Plugin, point: EntryPoint, subfolder: str) -> list[PluginFile]:
    module = sys.modules[point.module]
    if not hasattr(module, "__path__"):
        return []  # a single module has no folder of its own
    folder = Path(str(importlib.resources.files(module))) / subfolder
    return [PluginFile(file.stem, plugin.name, file) for file in sorted(folder.glob("*.yaml"))]
