"""``zoo plugins``: installed plugins, what they provide, and their problems."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.terminal import console
from zoo.cli.verbosity import VerboseOption
from zoo.errors import one_line

if TYPE_CHECKING:
    from zoo.cli.index import PluginRecord

EXAMPLE = "zoo plugins --verbose"
_COLOURS = {"ok": "green", "off": "dim", "conflict": "yellow", "error": "red"}


def command(verbose: VerboseOption = False, as_json: JsonOption = False) -> None:
    """List installed plugins with their distribution, components and problems.

    The environment variable ZOO_PLUGINS selects the third-party plugins to load: names of plugins
    or distributions separated by commas, or 'none'. --verbose also prints tracebacks.
    """
    from zoo.cli.index import load_index

    found = load_index().plugins
    if as_json:
        print_json([_as_json(plugin) for plugin in found])
        return
    from rich.text import Text

    columns = ("plugin", "distribution", "status", "provides")
    print_rows(
        columns,
        (
            (
                plugin.name,
                f"{plugin.distribution} {plugin.version}",
                Text(plugin.status, style=_COLOURS[plugin.status]),
                _describe_provided(plugin),
            )
            for plugin in found
        ),
        no_wrap=columns[:3],
    )
    out = console()
    for plugin in found:
        for problem in (*plugin.errors, *plugin.conflicts):
            line = one_line(f"{plugin.name} ({plugin.distribution}): {problem}")
            out.print(f"\n{line}", markup=False)
        if verbose and plugin.traceback:
            out.print(textwrap.indent(plugin.traceback, "  "), markup=False)


def _describe_provided(plugin: PluginRecord) -> str:
    names = [f"{component.kind} {component.name}" for component in plugin.components]
    names += [f"importer {importer.name}" for importer in plugin.importers]
    names += [f"command {command.name}" for command in plugin.commands]
    return ", ".join(names)


def _as_json(plugin: PluginRecord) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "target": plugin.target,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "status": plugin.status,
        "components": [f"{c.kind} {c.name}" for c in plugin.components],
        "specs": [file.name for file in plugin.specs],
        "maps": [file.name for file in plugin.maps],
        "importers": [importer.name for importer in plugin.importers],
        "catalogues": plugin.catalogues,
        "commands": [command.name for command in plugin.commands],
        "errors": plugin.errors,
        "conflicts": plugin.conflicts,
    }
