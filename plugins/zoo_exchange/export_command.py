"""``zoo export``: convert a model file to another library's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.completion import complete_importer
from zoo.cli.output import JsonOption, ModelArgument, format_bytes, print_json, spec_errors
from zoo.cli.progress import byte_progress
from zoo.cli.run_options import BaseOption
from zoo_exchange.exchange_options import (
    DryRunOption,
    DtypeOption,
    MapOption,
    print_plan,
)


def command(
    model: ModelArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to create.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="Format to write, the name of an importer; by default the one the model was "
            "imported with.",
            autocompletion=complete_importer,
        ),
    ] = None,
    map: MapOption = None,
    dtype: DtypeOption = None,
    dry_run: DryRunOption = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a model's weights and config to the format of another library.

    A file that has an adapter only is exported as a folder of peft.
    """
    from zoo.hub.models import find, read_header
    from zoo_exchange.adapter_exchange import export_adapter
    from zoo_exchange.export_plan import plan_export

    if read_header(model).base is not None:
        given = {"--to": to, "--map": map, "--dtype": dtype, "--dry-run": dry_run}
        if used := [name for name, value in given.items() if value]:
            raise typer.BadParameter(f"{model} is an adapter, which is exported without {used[0]}")
        export_adapter(model, folder, base=base)
        if as_json:
            print_json({"folder": str(folder), "base": read_header(model).base})
        else:
            print(f"{folder}: adapter_config.json and adapter_model.safetensors, for peft")
        return
    if base is not None:
        raise typer.BadParameter(f"{model} has all its weights, so --base has no meaning")
    with spec_errors(as_json=as_json):
        export_plan = plan_export(find(model), to=to, map=map, dtype=dtype)
        if dry_run:
            print_plan(export_plan.tensors, as_json=as_json)
            return
        with byte_progress(export_plan.tensors.nbytes, "exporting") as progress:
            export_plan.write(folder, progress=progress)
    if as_json:
        plan = export_plan.tensors.as_json()
        print_json({"folder": str(folder), **plan, "notes": list(export_plan.notes)})
        return
    size = format_bytes(export_plan.tensors.nbytes)
    print(f"{folder}: {len(export_plan.tensors.targets):,} tensors, {size}")
    for note in export_plan.notes:
        print(note)
