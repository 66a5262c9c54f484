"""``zoo compose``: a spec to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import SetOption, SpecArgument, format_bytes

if TYPE_CHECKING:
    from zoo.interfaces import Model

EXAMPLE = "zoo compose bahdanau-reversal -o model.safetensors --seed 1"


def command(
    spec: SpecArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    overrides: SetOption = None,
    seed: Annotated[int, typer.Option(help="What the first weights are drawn from.")] = 0,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A tokenizer.json for the model to carry, for both sides.")
    ] = None,
    target_tokenizer: Annotated[
        Path | None, typer.Option(help="Another one for what is spoken.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.")] = "float32",
) -> None:
    """Build the model a spec describes, with fresh weights, and save it."""
    from zoo.artifact import save
    from zoo.spec.composition import compose

    model = compose(spec, seed=seed, dtype=dtype, overrides=overrides or ())
    if tokenizer or target_tokenizer:
        _attach_tokenizers(model, tokenizer, target_tokenizer)
    path = save(model, output, provenance={"seed": seed})
    print(f"{output}: {sum(p.numel() for p in model.parameters()):,} parameters, ", end="")
    print(format_bytes(path.stat().st_size))


def _attach_tokenizers(model: Model, source: Path | None, target: Path | None) -> None:
    from zoo.errors import ZooError
    from zoo.generation.tokenizer import attach_tokenizers, read_tokenizer

    if source is None:
        raise ZooError("--target-tokenizer needs --tokenizer beside it, for what is read")
    read = read_tokenizer(source)
    attach_tokenizers(model, {"source": read, "target": read_tokenizer(target) if target else read})
