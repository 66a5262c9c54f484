"""``zoo list``: components, specs, maps and importers of the installed plugins."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from zoo.cli.completion import complete_kind
from zoo.cli.output import JsonOption, print_json, print_rows

EXAMPLE = "zoo list --kind scorer"
_SHOWN = ("kind", "name", "plugin", "serves", "summary", "description")


def command(
    kind: Annotated[
        str | None,
        typer.Option(
            help="List components of this kind only, for example scorer.",
            autocompletion=complete_kind,
        ),
    ] = None,
    specs: Annotated[bool, typer.Option("--specs", help="List specs of plugins instead.")] = False,
    maps: Annotated[bool, typer.Option("--maps", help="List maps of plugins instead.")] = False,
    importers: Annotated[
        bool, typer.Option("--importers", help="List importers of plugins instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the components of the installed plugins, or their specs, maps or importers."""
    from dataclasses import asdict

    from zoo.cli.index import load_index
    from zoo.errors import ZooError

    if sum((kind is not None, specs, maps, importers)) > 1:
        raise ZooError("--kind, --specs, --maps and --importers cannot be combined")
    index = load_index()
    rows: list[dict[str, Any]]
    if specs or maps:
        groups = index.specs if specs else index.maps
        files = sorted((f for group in groups.values() for f in group), key=lambda f: f.name)
        rows = [{"name": f.name, "plugin": f.plugin, "file": f.file} for f in files]
        if specs:
            rows = [{**row, "description": _describe(row["file"])} for row in rows]
    elif importers:
        rows = [asdict(importer) for importer in index.importers]
    else:
        rows = [component.as_json() for component in index.components(kind)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        print(f"no installed plugin has components of kind '{kind}'" if kind else "no matches")
        return
    columns = [column for column in _SHOWN if all(column in row for row in rows)]
    print_rows(
        columns,
        ([row[column] for column in columns] for row in rows),
        no_wrap=("kind", "name", "plugin"),
    )


def _describe(file: str) -> str:
    """Return the description of a spec, or why it cannot be read."""
    from zoo.errors import SpecError
    from zoo.spec.document import read_file

    try:
        data = read_file(file).data
    except SpecError as error:
        return str(error)
    return str(data.get("description", "")) if isinstance(data, dict) else ""
