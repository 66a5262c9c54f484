"""``zoo import``: another library's model to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.output import Json, Set, human, print_json
from zoo.cli.weights import DryRun, Dtype, Map, print_plan, progressing, told

EXAMPLE = "zoo import weights.safetensors --spec spec.yaml --map map.yaml -o model.safetensors"


def command(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A folder with config.json, one file, or org/name."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.")
    ] = None,
    spec: Annotated[
        str | None, typer.Option(help="What the model is; the importer says if not set.")
    ] = None,
    map: Map = None,
    overrides: Set = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer.json for the model to carry.")
    ] = None,
    dtype: Dtype = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Bring in a model of another library: its weights by a map, nothing of it executed."""
    from zoo.errors import ZooError
    from zoo.exchange.import_plan import arriving

    if output is None and not dry_run:
        raise ZooError("say where to write the model: -o model.safetensors, or --dry-run")
    changes = overrides or ()
    with told(as_json=as_json):
        arrival = arriving(
            source, spec=spec, map=map, overrides=changes, tokenizer=tokenizer, dtype=dtype
        )
        if output is None or dry_run:
            print_plan(arrival.plan, as_json=as_json)
            return
        with progressing(arrival.bytes) as progress:
            path = arrival.write(output, progress=progress)
    if as_json:
        print_json({"file": str(output), **arrival.plan.as_json()})
        return
    print(f"{output}: {len(arrival.plan.targets):,} tensors, {human(path.stat().st_size)}")
