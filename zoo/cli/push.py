"""`zoo push`: upload a saved model to the Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import JsonOption, ModelArgument, print_json
from zoo.cli.terminal import progress_on_stderr

EXAMPLE = "zoo push model.safetensors zoo-team/bahdanau-reversal --private"


def command(
    model: ModelArgument,
    repo: Annotated[
        str, typer.Argument(metavar="REPO", help="ORG/NAME, created if it does not exist.")
    ],
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--public",
            help="Visibility of a new repository. "
            "Default: the default of the organisation on the Hub.",
        ),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Branch. Default: main.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Commit message.")] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            help="Licence, for example apache-2.0. "
            "Default: the licence in the model file or the catalogue."
        ),
    ] = None,
    shard_bytes: Annotated[
        str | None,
        typer.Option(help="Split the weights into files of at most this size, for example 2GB."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Upload a model with config.json, a model card and a diagram of its parts, in one commit.

    Needs a token with write access, from HF_TOKEN or 'hf auth login'.
    """
    from zoo.hub.publish import push

    with progress_on_stderr():
        pushed = push(
            model,
            repo,
            private=private,
            revision=revision,
            message=message,
            licence=licence,
            shard_bytes=shard_bytes,
        )
    if as_json:
        print_json(pushed.as_json())
    else:
        print(f"{pushed.url}: commit {pushed.commit}")
