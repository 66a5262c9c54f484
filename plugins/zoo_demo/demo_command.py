"""``zoo demo``: translate sentences and recognise digits with the shipped models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.completion import complete_device
from zoo.cli.output import SetOption


def command(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SENTENCE",
            help="Portuguese sentences to translate into English; by default four examples. With "
            "--train: a small sequence-to-sequence spec; by default bahdanau-reversal.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pictures and the model.")
    ] = Path("zoo-demo"),
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train a small model to reverse sequences instead, in about a minute."
        ),
    ] = False,
    overrides: SetOption = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of training steps; default: 1500.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the training; default: 0.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Device of the shipped models; default: cpu.", autocompletion=complete_device
        ),
    ] = None,
) -> None:
    """Translate sentences and recognise digits with the shipped models.

    Shows attention weights in the terminal and as pictures; saves, verifies and
    reloads a model. --set, --steps and --seed are options of --train.
    """
    from zoo.errors import ZooError

    if train:
        from zoo_demo.demo_training import train_demo

        if device is not None:
            raise ZooError("--device cannot be used with --train, which runs on the CPU")
        specs = sentences or ["bahdanau-reversal"]
        if len(specs) > 1:
            raise ZooError(
                f"--train takes one spec, but {len(specs)} are given: {', '.join(specs)}"
            )
        train_demo(specs[0], overrides or (), steps or 1500, seed or 0, output)
        return
    given = {"--set": overrides, "--steps": steps, "--seed": seed}
    if unused := [name for name, value in given.items() if value is not None]:
        raise ZooError(f"{' and '.join(unused)} cannot be used without --train")
    from zoo_demo.demo_report import show_models
    from zoo_demo.models import SENTENCES

    show_models(sentences or SENTENCES, output, device or "cpu")
