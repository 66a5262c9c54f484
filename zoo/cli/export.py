"""``zoo export``: a model file to another library's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.output import Json, ModelArgument, human, print_json
from zoo.cli.weights import DryRun, Dtype, Map, print_plan, progressing, told

EXAMPLE = "zoo export model.safetensors folder --to llama"


def command(
    model: ModelArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
    to: Annotated[
        str | None, typer.Option(help="Which importer's layout; where it came from if not set.")
    ] = None,
    map: Map = None,
    dtype: Dtype = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a model's weights and config as another library reads them."""
    from zoo.exchange.export_plan import departing
    from zoo.hub.models import find

    with told(as_json=as_json):
        departure = departing(find(model), to=to, map=map, dtype=dtype)
        if dry_run:
            print_plan(departure.plan, as_json=as_json)
            return
        with progressing(departure.bytes) as progress:
            departure.write(folder, progress=progress)
    if as_json:
        print_json({"folder": str(folder), **departure.plan.as_json()})
        return
    print(f"{folder}: {len(departure.plan.targets):,} tensors, {human(departure.bytes)}")
