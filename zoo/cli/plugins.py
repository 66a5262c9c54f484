"""``zoo plugins``: what is installed, what it offers, what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import JsonOption, console, print_json, print_table, table

EXAMPLE = "zoo plugins --verbose"


def command(
    verbose: Annotated[bool, typer.Option("--verbose", help="Print tracebacks of faults.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List plugins with their distribution and any fault. ZOO_PLUGINS switches them on and off."""
    from zoo.registry.component_registry import default_registry

    found = default_registry().plugins
    if as_json:
        print_json(
            [
                {
                    "name": plugin.name,
                    "target": plugin.target,
                    "distribution": plugin.distribution,
                    "version": plugin.version,
                    "status": plugin.status,
                    "components": [f"{e.kind} {e.name}" for e in plugin.entries],
                    "specs": [offer.name for offer in plugin.specs],
                    "faults": plugin.faults,
                    "clashes": plugin.conflicts,
                }
                for plugin in found
            ]
        )
        return
    from rich.text import Text

    columns = ("plugin", "distribution", "status", "offers")
    rows = table(*columns, no_wrap=columns[:3])
    colours = {"ok": "green", "off": "dim", "clash": "yellow", "faulty": "red"}
    for plugin in found:
        offers = ", ".join(entry.name for entry in plugin.entries)
        status = Text(plugin.status, style=colours[plugin.status])
        distribution = Text(f"{plugin.distribution} {plugin.version}")
        rows.add_row(Text(plugin.name), distribution, status, Text(offers))
    print_table(rows)
    out = console()
    for plugin in found:
        for cause in plugin.faults + plugin.conflicts:
            out.print(f"\n{plugin.name} ({plugin.distribution}): {cause}", markup=False)
        if verbose and plugin.trace:
            out.print(plugin.trace, markup=False)
