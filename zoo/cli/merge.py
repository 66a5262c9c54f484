"""``zoo merge``: write a model with its adapters merged into the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.output import JsonOption, ModelArgument, print_saved
from zoo.cli.progress import activity
from zoo.cli.run_options import BaseOption

EXAMPLE = "zoo merge adapter.safetensors -o merged.safetensors"


def command(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the adapters of a model into its weights.

    The base of an adapter is found by the name in its file, or given with --base. The merged model
    has no adapters, and the same outputs.
    """
    from zoo.artifact import read_header, save
    from zoo.artifact.merging import merge_adapters
    from zoo.hub.models import find, load

    stored = read_header(find(model)).provenance
    loaded = load(model, base=base)
    with activity("merging the adapters"):
        merged = merge_adapters(loaded)
        path = save(merged, output, provenance={**stored, "merged": Path(model).name})
    print_saved(output, merged, path.stat().st_size, as_json=as_json)
