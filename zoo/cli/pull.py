"""`zoo pull`: download a model from the Hub and record its commit in zoo.lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.completion import complete_model
from zoo.cli.output import CataloguesOption, JsonOption, print_json

EXAMPLE = "zoo pull zoo-team/bahdanau-reversal --revision v1"


def command(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="ORG/NAME, hub:ORG/NAME@REVISION or a name in the catalogue.",
            autocompletion=complete_model,
        ),
    ],
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit. Default: main.")
    ] = None,
    locked: Annotated[
        bool, typer.Option("--locked", help="Use the commit in zoo.lock, or fail.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the cache only, without requests.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Download again, even if cached.")] = False,
    cache_dir: Annotated[
        Path | None, typer.Option(help="Cache directory. Default: from HF_HOME.")
    ] = None,
    catalogues: CataloguesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download a model from the Hub, check its hashes, and record its commit in ./zoo.lock.

    HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE work as in huggingface_hub.
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
