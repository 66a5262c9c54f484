"""``zoo embed``: one vector for each input."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.inputs import FileOption, InputsArgument, read_inputs, warn_unknown
from zoo.cli.output import JsonOption, ModelArgument, print_json
from zoo.cli.run_options import BaseOption, DeviceOption, default_device

EXAMPLE = "zoo embed minilm.safetensors 'A man sleeps.' --truncate-dim 64"


def command(
    model: ModelArgument,
    texts: InputsArgument = None,
    file: FileOption = None,
    side: Annotated[
        str, typer.Option(help="source, or target for the second tower of a model with two.")
    ] = "source",
    prompt: Annotated[
        str | None,
        typer.Option(
            help="Name of a prompt of the model, such as query, or a text that is inserted before "
            "each INPUT; '' for none. Default: the model's default prompt.",
        ),
    ] = None,
    truncate_dim: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features, the first ones; default: that of the model."),
    ] = None,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="Return vectors of length one.")
    ] = False,
    base: BaseOption = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute a vector for each text or image, with a sentence encoder or a model with two towers.

    A line has the numbers of a vector, separated by spaces.
    """
    from zoo.generation.embedding import embed
    from zoo.hub.models import load

    read = read_inputs(texts or [], file)
    loaded = load(model, base=base, device=default_device(device))
    with read.report_lines():
        if side == "source":
            warn_unknown(loaded, read.lines)
        vectors = embed(
            loaded,
            read.lines,
            side=side,
            prompt=prompt,
            truncate_dim=truncate_dim,
            normalise=normalise,
        ).tolist()
    if as_json:
        pairs = zip(read.lines, vectors, strict=True)
        print_json([{"input": line, "vector": vector} for line, vector in pairs])
        return
    for vector in vectors:
        print(" ".join(f"{number:.6g}" for number in vector))
