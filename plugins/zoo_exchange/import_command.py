"""``zoo import``: convert another library's model to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zoo.cli.completion import complete_device, complete_model, complete_spec
from zoo.cli.output import JsonOption, SetOption, format_bytes, print_json, spec_errors
from zoo.cli.progress import activity, byte_progress
from zoo_exchange.exchange_options import (
    DryRunOption,
    DtypeOption,
    MapOption,
    print_plan,
)


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder with config.json, a safetensors file, or ORG/NAME on the Hub.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The model file to write. Required without --dry-run."),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            help="The spec of the model; by default the importer creates it.",
            autocompletion=complete_spec,
        ),
    ] = None,
    map: MapOption = None,
    overrides: SetOption = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer.json to store in the model file.")
    ] = None,
    dtype: DtypeOption = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            help="A key of config.json or generation_config.json to leave out; can be repeated.",
            metavar="KEY",
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file with inputs and outputs of the original to compare with; nothing "
            "is written if they differ."
        ),
    ] = None,
    check_original: Annotated[
        bool,
        typer.Option(
            "--check-with-transformers",
            help="Compare logits with those of transformers, which must be installed, for random "
            "padded inputs; nothing is written if they differ.",
        ),
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(
            help="With --check: the largest difference allowed, relative to the largest value.",
            min=0,
        ),
    ] = 1e-4,
    force: Annotated[
        bool, typer.Option("--force", help="With --check: write the model even if it differs.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            help="For a folder of peft: the imported model to which the adapter belongs.",
            autocompletion=complete_model,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    device: Annotated[
        str | None,
        typer.Option(
            help="With --check: the device of the model, for example cuda:1; default: cpu.",
            autocompletion=complete_device,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import a model of another library. Its weights are mapped; none of its code is executed.

    A folder with adapter_config.json is an adapter of peft, which needs --base.
    """
    from zoo.errors import ZooError
    from zoo.hub.reference import is_repository
    from zoo.spec.meta import skip_dynamo_import
    from zoo_exchange.adapter_folder import is_adapter_folder
    from zoo_exchange.importing import plan_source, resolve_source

    if output is None and not dry_run:
        if not is_repository(source):
            resolve_source(source)  # a missing source is reported first
        raise ZooError("-o is required without --dry-run, for example -o model.safetensors")
    if is_adapter_folder(source) or base is not None:
        _import_adapter(source, output, base, as_json=as_json)
        return
    if check is not None and check_original:
        raise ZooError("--check and --check-with-transformers exclude each other")
    if force and check is None and not check_original:
        raise ZooError("--force needs --check; without it the model is always written")
    with spec_errors(as_json=as_json):
        options = {
            "overrides": overrides or (),
            "tokenizer": tokenizer,
            "dtype": dtype,
            "ignore": ignore or (),
        }
        with skip_dynamo_import():
            import_plan = plan_source(source, spec=spec, map=map, **options)
        result = None
        settings: dict[str, Any] = {"tolerance": tolerance, "device": device or "cpu"}
        with activity("comparing with the original"):
            if check is not None:
                import_plan, result = import_plan.check(check, **settings)
            elif check_original:
                import_plan, result = import_plan.check_with_original(**settings)
        if result is not None and result.failures and not force:
            hint = "nothing was written; --force writes the model anyway"
            raise ZooError(f"{result.message()}\n  {hint}")
        if output is None or dry_run:
            print_plan(import_plan.tensors, as_json=as_json)
            return
        with byte_progress(import_plan.tensors.nbytes, "importing") as progress:
            path = import_plan.write(output, progress=progress)
    if as_json:
        checked = {} if result is None else {"check": result.as_json()}
        print_json(
            {
                "file": str(output),
                **import_plan.tensors.as_json(),
                "notes": import_plan.notes,
                **checked,
            }
        )
        return
    if result is not None:
        print(result.message())
    size = format_bytes(path.stat().st_size)
    print(f"{output}: {len(import_plan.tensors.targets):,} tensors, {size}")
    for note in import_plan.notes:
        print(note)


def _import_adapter(source: str, output: Path | None, base: str | None, *, as_json: bool) -> None:
    from zoo.errors import ZooError
    from zoo_exchange.adapter_exchange import import_adapter
    from zoo_exchange.adapter_folder import CONFIG, is_adapter_folder

    if not is_adapter_folder(source):
        raise ZooError(f"--base is for adapters, but {source} has no {CONFIG}")
    if base is None or output is None:
        raise ZooError(
            f"{source} is an adapter; set its base, the imported model it belongs to, and -o: "
            "--base model.safetensors -o adapter.safetensors"
        )
    path = import_adapter(source, output, base=base)
    if as_json:
        print_json({"file": str(output), "base": base})
        return
    print(f"{output}: adapter of {base}, {format_bytes(path.stat().st_size)}")
