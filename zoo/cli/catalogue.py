"""``zoo catalogue``: published models."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from zoo.cli.completion import complete_model
from zoo.cli.output import CataloguesOption, JsonOption, format_bytes, print_json, print_rows
from zoo.errors import one_line

EXAMPLE = "zoo catalogue transformer 2017"


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="List only models that match all of these words.",
            autocompletion=complete_model,
        ),
    ] = None,
    catalogues: CataloguesOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the models of the catalogue; '-' means that no weights or results are published.

    Models with shipped weights are loaded by name, without a download.
    """
    from zoo.cli.index import load_index

    index = load_index()
    models = list(index.models)
    if catalogues:
        from zoo.cli.index.build import read_models

        models += read_models(catalogues)
    terms = [word.casefold() for word in words or ()]
    found = [model.data for model in models if all(term in model.text for term in terms)]
    for problem in index.catalogue_problems:
        print(f"ignored: {one_line(problem)}", file=sys.stderr)
    if as_json:
        print_json(found)
    elif found:
        _print(found)
    else:
        print(
            f"no model matches '{' '.join(words or ())}' (the catalogue has {len(models)} models)"
        )


def _print(models: Sequence[Mapping[str, Any]]) -> None:
    columns = ("name", "weights", "results", "licence", "paper")
    print_rows(columns, (_cells(model) for model in models), no_wrap=("name", "licence"))


def _cells(model: Mapping[str, Any]) -> tuple[str, ...]:
    where = " or ".join(_describe_weights(model)) or "-"
    results = ", ".join(
        f"{r.get('label') or r['metric']} {r['value']} ({r['dataset']})" for r in model["results"]
    )
    return (model["name"], where, results or "-", model["licence"], model["paper"])


def _describe_weights(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the weights of a model are: shipped, with their size, and on the Hub."""
    if shipped := model["shipped"]:
        yield f"shipped, {format_bytes(shipped['bytes'])}"
    if weights := model["weights"]:
        yield f"{weights['hub']}@{weights['revision'][:12]}"
