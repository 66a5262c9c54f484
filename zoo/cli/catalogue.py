"""``zoo catalogue``: published models, listed and searched."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import CataloguesOption, JsonOption, print_json, print_table, table

if TYPE_CHECKING:
    from zoo.hub.catalogue import CatalogueEntry

EXAMPLE = "zoo catalogue transformer 2017"


def command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Only models with all of these.")
    ] = None,
    catalogues: CataloguesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List published models: paper, licence, where weights are, what was measured."""
    from zoo.hub.catalogue import load_catalogue

    known = load_catalogue(catalogues or ())
    found = known.search(words or ())
    for fault in known.problems:
        print(f"left out: {fault}", file=sys.stderr)
    if as_json:
        print_json([model.as_json() for model in found])
    elif found:
        _print(found)
    else:
        print(f"none of {len(known.models)} models has {' '.join(words or ())}")


def _print(found: list[CatalogueEntry]) -> None:
    from rich.text import Text

    rows = table("name", "weights", "results", "licence", "paper", no_wrap=("name", "licence"))
    for model in found:
        weights = f"{model.weights.hub}@{model.weights.revision[:12]}" if model.weights else "-"
        results = ", ".join(f"{r.metric} {r.value} ({r.dataset})" for r in model.results)
        cells = (model.name, weights, results or "-", model.licence, model.paper)
        rows.add_row(*(Text(cell) for cell in cells))
    print_table(rows)
