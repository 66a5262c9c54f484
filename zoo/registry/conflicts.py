"""Report names that more than one plugin uses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from zoo.interfaces import Entry
from zoo.registry.plugin_data import Plugin


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
