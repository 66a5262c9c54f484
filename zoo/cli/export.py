"""``zoo export``: a model file to another library's layout."""

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
from zoo.cli.output import JsonOption, ModelArgument, format_bytes, print_json

EXAMPLE = "zoo export model.safetensors folder --to llama"


def command(
    model: ModelArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
    to: Annotated[
        str | None, typer.Option(help="Which importer's layout; where it came from if not set.")
    ] = None,
    map: MapOption = None,
    dtype: Dtype = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model's weights and config as another library reads them."""
    from zoo.exchange.export_plan import plan_export
    from zoo.hub.models import find

    with report_spec_errors(as_json=as_json):
        export_plan = plan_export(find(model), to=to, map=map, dtype=dtype)
        if dry_run:
            print_plan(export_plan.plan, as_json=as_json)
            return
        with progress_bar(export_plan.bytes) as progress:
            export_plan.write(folder, progress=progress)
    if as_json:
        print_json({"folder": str(folder), **export_plan.plan.as_json()})
        return
    print(f"{folder}: {len(export_plan.plan.targets):,} tensors, {format_bytes(export_plan.bytes)}")
