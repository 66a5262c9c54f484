"""``zoo push``: a saved model to the Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import Json, ModelArgument, print_json

EXAMPLE = "zoo push model.safetensors zoo-team/bahdanau-reversal --private"


def command(
    model: ModelArgument,
    repo: Annotated[str, typer.Argument(metavar="REPO", help="ORG/NAME; made if there is none.")],
    private: Annotated[
        bool | None,
        typer.Option("--private/--public", help="For a new repository; the Hub's choice if unset."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="A branch; main if not set.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="The commit's.")] = None,
    licence: Annotated[
        str | None, typer.Option(help="As apache-2.0; the catalogue's or the file's if not set.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Publish a model with config.json, a model card and a picture of its parts, in one commit."""
    from zoo.hub.publish import push

    pushed = push(model, repo, private=private, revision=revision, message=message, licence=licence)
    if as_json:
        print_json(pushed.as_json())
    else:
        print(f"{pushed.url}: commit {pushed.commit}")
