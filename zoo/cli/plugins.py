"""``zoo plugins``: what is installed, what it offers, what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import Json, console, print_json

EXAMPLE = "zoo plugins --verbose"


def command(
    verbose: Annotated[bool, typer.Option("--verbose", help="Print tracebacks of faults.")] = False,
    as_json: Json = False,
) -> None:
    """List plugins with their distribution and any fault. ZOO_PLUGINS switches them on and off."""
    from zoo.registry import default_registry

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
                    "clashes": plugin.clashes,
                }
                for plugin in found
            ]
        )
        return
    from rich.table import Table

    out = console()
    table = Table(box=None, header_style="bold")
    for column in ("plugin", "distribution", "status", "offers"):
        table.add_column(column)
    colours = {"ok": "green", "off": "dim", "clash": "yellow", "faulty": "red"}
    for plugin in found:
        offers = ", ".join(entry.name for entry in plugin.entries)
        status = f"[{colours[plugin.status]}]{plugin.status}[/]"
        table.add_row(plugin.name, f"{plugin.distribution} {plugin.version}", status, offers)
    out.print(table)
    for plugin in found:
        for cause in plugin.faults + plugin.clashes:
            out.print(f"\n{plugin.name} ({plugin.distribution}): {cause}", markup=False)
        if verbose and plugin.trace:
            out.print(plugin.trace, markup=False)
