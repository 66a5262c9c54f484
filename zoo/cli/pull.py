"""``zoo pull``: a model from the Hub into the cache, its commit into zoo.lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.output import CataloguesOption, JsonOption, print_json

EXAMPLE = "zoo pull zoo-team/bahdanau-reversal --revision v1"


def command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF", help="ORG/NAME or hub:ORG/NAME@REVISION, or a catalogue's name."
        ),
    ],
    revision: Annotated[
        str | None, typer.Option(help="A branch, a tag or a commit; main if not set.")
    ] = None,
    locked: Annotated[
        bool, typer.Option("--locked", help="Take only what zoo.lock says, or fail.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use what the cache has; ask nobody.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Download again what the cache has.")
    ] = False,
    cache_dir: Annotated[
        Path | None, typer.Option(help="Another cache than the one HF_HOME names.")
    ] = None,
    catalogues: CataloguesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model from the Hub, check every byte, and note its commit in ./zoo.lock.

    HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE mean what they mean to huggingface_hub.
    """
    from zoo.hub.models import pull

    pulled = pull(
        reference,
        revision=revision,
        locked=locked,
        catalogues=catalogues or (),
        cache_dir=cache_dir,
        local_files_only=offline,
        force_download=force,
    )
    if as_json:
        print_json(pulled.as_json())
    else:
        print(f"{pulled.reference}: commit {pulled.commit}")
        print(pulled.path)
