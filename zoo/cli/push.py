"""``zoo push``: a saved model to the Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import JsonOption, ModelArgument, print_json

EXAMPLE = "zoo push model.safetensors zoo-team/bahdanau-reversal --private"


def command(
    model: ModelArgument,
    repo: Annotated[str, typer.Argument(metavar="REPO", help="ORG/NAME, made if there is none.")],
    private: Annotated[
        bool | None,
        typer.Option("--private/--public", help="For a new repository; the Hub's choice if unset."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="A branch; main if not set.")] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="The commit's words.")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(help="As apache-2.0; what the file or the catalogue says if not set."),
    ] = None,
    shard_bytes: Annotated[
        str | None, typer.Option(help="Cut the weights anew, into files of at most so much: 2GB.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a model with config.json, a model card and a picture of its parts, in one commit.

    It takes a token with write access, from HF_TOKEN or 'hf auth login'.
    """
    from zoo.hub.publish import push

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
