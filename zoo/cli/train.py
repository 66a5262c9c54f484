"""``zoo train``: train the model of a spec."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, SetOption, SpecArgument, print_json, require_readable
from zoo.cli.run_options import DeviceOption, StartOption

if TYPE_CHECKING:
    from zoo.training.callback import TrainingResult

EXAMPLE = "zoo train spec.yaml -o run --set train.steps=500"


class Parallel(StrEnum):
    """How several processes train one model."""

    ddp = "ddp"
    fsdp = "fsdp"


def command(
    spec: SpecArgument,
    overrides: SetOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for log, checkpoints and model; default: runs/ and the spec's name.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the newest checkpoint in the folder.")
    ] = False,
    device: DeviceOption = None,
    start: StartOption = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; default: train.seed.")] = None,
    parallel: Annotated[
        Parallel | None,
        typer.Option(help="Replicate (ddp) or shard (fsdp) the model over several processes."),
    ] = None,
    allow_trackers: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-tracker",
            metavar="NAME",
            help="Allow a tracker of the spec that may upload data, such as wandb. Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a model as the section 'train' of its spec describes; evaluate and save it.

    Several processes: accelerate launch --no-python zoo train SPEC -o DIR.
    """
    require_readable(spec)
    from zoo.cli.training_progress import TrainingProgress
    from zoo.training.interruption import Interrupted
    from zoo.training.run import train

    progress = TrainingProgress(stderr=as_json)
    try:
        with progress:
            result = train(
                spec,
                output=output,
                overrides=overrides or (),
                resume=resume,
                device=device,
                seed=seed,
                start=start,
                parallel=parallel.value if parallel else None,
                callbacks=[progress],
                allow_trackers=allow_trackers or (),
            )
    except Interrupted as stop:
        typer.echo(str(stop), err=True)
        raise typer.Exit(stop.exit_code) from None
    if as_json and progress.started:
        print_json(_to_json(result))


def _to_json(result: TrainingResult) -> dict[str, object]:
    values = asdict(result)
    return {**values, "path": str(result.path), "log": str(result.log)}
