"""Options of the commands that run or train a model."""

from typing import Annotated

import typer

from zoo.cli.completion import complete_device, complete_model

DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="Device, for example cpu or cuda:1; default: a GPU if there is one.",
        autocompletion=complete_device,
    ),
]

StartOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="MODEL",
        help="Start from the weights of a model: a file, a run, a shipped name, or org/name.",
        autocompletion=complete_model,
    ),
]


BaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The base of an adapter, if it is not at the place that its file names: a file, a "
        "run, a shipped name, or org/name. Its hash is compared.",
    ),
]


def default_device(device: str | None) -> str:
    """Return the device of the option, or a GPU if there is one."""
    if device is not None:
        return device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
