"""``zoo list``: what the installed plugins offer."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import JsonOption, print_json, print_table, table

EXAMPLE = "zoo list --kind scorer"


def command(
    kind: Annotated[str | None, typer.Option(help="Only this kind, for example scorer.")] = None,
    specs: Annotated[bool, typer.Option("--specs", help="List shipped specs instead.")] = False,
    maps: Annotated[bool, typer.Option("--maps", help="List shipped maps instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List components, or shipped specs or maps, with the plugin that offers each."""
    from zoo.errors import ZooError
    from zoo.registry.component_registry import default_registry

    if sum((kind is not None, specs, maps)) > 1:
        raise ZooError("--kind, --specs and --maps each list something else; give one of them")
    registry = default_registry()
    if specs or maps:
        shipped = registry.specs if specs else registry.maps
        offers = [offer for group in shipped.values() for offer in group]
        rows = [
            {"name": offer.name, "plugin": offer.plugin, "file": str(offer.path)}
            for offer in sorted(offers, key=lambda offer: offer.name)
        ]
    else:
        rows = [{k: str(v) for k, v in e.as_json().items()} for e in registry.components(kind)]
    if as_json:
        print_json(
            rows if specs or maps else [entry.as_json() for entry in registry.components(kind)]
        )
        return
    _print(rows, hidden=("version", "distribution", "paper", "file"))


def _print(rows: list[dict[str, str]], hidden: tuple[str, ...]) -> None:
    from rich.text import Text

    columns = [key for key in (rows[0] if rows else {}) if key not in hidden]
    listed = table(*columns, no_wrap=("kind", "name", "plugin"))
    for row in rows:
        listed.add_row(*(Text(row[column]) for column in columns))
    print_table(listed)
