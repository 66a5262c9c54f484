"""``zoo compose``: build a model from a spec and save it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, SetOption, SpecArgument, print_saved, spec_errors
from zoo.cli.progress import activity

if TYPE_CHECKING:
    from zoo.interfaces import Model

EXAMPLE = "zoo compose bahdanau-reversal -o model.safetensors --seed 1"


def command(
    spec: SpecArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file.")],
    overrides: SetOption = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="A tokenizer.json to store in the model, for source and target."),
    ] = None,
    target_tokenizer: Annotated[
        Path | None, typer.Option(help="A separate tokenizer.json for the target.")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Data type: float32, bfloat16, float16 or float64.")
    ] = "float32",
    as_json: JsonOption = False,
) -> None:
    """Build a model from a spec, initialise its weights and save it."""
    from zoo.artifact import save
    from zoo.spec.meta import skip_dynamo_import
    from zoo.training.composing import compose

    with spec_errors(as_json=as_json), skip_dynamo_import():
        model = compose(spec, seed=seed, dtype=dtype, overrides=overrides or ())
    if tokenizer or target_tokenizer:
        _attach_tokenizers(model, tokenizer, target_tokenizer)
    with activity("saving the model"):
        path = save(model, output, provenance={"seed": seed})
    print_saved(output, model, path.stat().st_size, as_json=as_json)


def _attach_tokenizers(model: Model, source: Path | None, target: Path | None) -> None:
    from zoo.data.tokenizer import attach_tokenizers, read_tokenizer
    from zoo.errors import ZooError

    if source is None:
        raise ZooError("--target-tokenizer needs --tokenizer, the tokenizer of the source")
    text = read_tokenizer(source)
    attach_tokenizers(model, {"source": text, "target": read_tokenizer(target) if target else text})
