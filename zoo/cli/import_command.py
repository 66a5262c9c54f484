"""``zoo import``: another library's model to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.exchange_options import (
    DryRun,
    Dtype,
    MapOption,
    print_plan,
    progress_bar,
    report_spec_errors,
)
from zoo.cli.output import JsonOption, SetOption, format_bytes, print_json

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
    map: MapOption = None,
    overrides: SetOption = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer.json for the model to carry.")
    ] = None,
    dtype: Dtype = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Bring in a model of another library: its weights by a map, nothing of it executed."""
    from zoo.errors import ZooError
    from zoo.exchange.import_plan import plan_import

    if output is None and not dry_run:
        raise ZooError("say where to write the model: -o model.safetensors, or --dry-run")
    changes = overrides or ()
    with report_spec_errors(as_json=as_json):
        import_plan = plan_import(
            source, spec=spec, map=map, overrides=changes, tokenizer=tokenizer, dtype=dtype
        )
        if output is None or dry_run:
            print_plan(import_plan.plan, as_json=as_json)
            return
        with progress_bar(import_plan.bytes) as progress:
            path = import_plan.write(output, progress=progress)
    if as_json:
        print_json({"file": str(output), **import_plan.plan.as_json()})
        return
    print(
        f"{output}: {len(import_plan.plan.targets):,} tensors, {format_bytes(path.stat().st_size)}"
    )
