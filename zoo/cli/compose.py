"""``zoo compose``: a spec to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.output import Set, SpecArgument, human

EXAMPLE = "zoo compose bahdanau-reversal -o model.safetensors --seed 1"


def command(
    spec: SpecArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    overrides: Set = None,
    seed: Annotated[int, typer.Option(help="What the first weights are drawn from.")] = 0,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.")] = "float32",
) -> None:
    """Build the model a spec describes, with fresh weights, and save it."""
    from zoo.artifact import save
    from zoo.composition import compose

    model = compose(spec, seed=seed, dtype=dtype, overrides=overrides or ())
    path = save(model, output, provenance={"seed": seed})
    print(f"{output}: {sum(p.numel() for p in model.parameters()):,} parameters, ", end="")
    print(human(path.stat().st_size))
