"""``zoo generate``: generate text with a saved model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from zoo.cli.output import JsonOption, ModelArgument, print_json

EXAMPLE = "zoo generate model.safetensors 'Ein Mann schläft .' --sampler beam --set width=4"


def command(
    model: ModelArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Input texts, or files of images or audio, as the model takes them; '-' reads "
            "standard input.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Read input texts from a file, one per line.")
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help="Sampler; default: the sampler of the model's spec.")
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Filter: a name, or '{type: no-repeat-ngram, n: 3}'. Repeatable.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARAM=VALUE",
            help="Set a parameter of the sampler, for example width=4. Repeatable.",
        ),
    ] = None,
    max_length: Annotated[int, typer.Option(min=1, help="Maximum number of new tokens.")] = 64,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Read each INPUT as token IDs separated by spaces.")
    ] = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Print the text while it is generated (samplers with one hypothesis only).",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Generate from source texts, images or audio, or continue prompts; classifiers print the class
    and its probability. A warning names symbols that the model does not know."""
    from zoo.generation.pipeline import generate
    from zoo.generation.prediction import can_predict
    from zoo.hub.models import load

    lines = _read_lines(texts or [], file)
    inputs: list[Any] = [_parse_ids(line) for line in lines] if ids else lines
    loaded = load(model)
    if not ids:
        _warn_unknown(loaded, lines)
    if loaded.generation_input is None and can_predict(loaded):
        _predict(loaded, lines, as_json=as_json)
        return
    options: dict[str, Any] = {
        "sampler": _sampler_config(sampler, settings or [], loaded.spec or {}),
        "filters": None if filters is None else [_parse_yaml(text, "--filter") for text in filters],
        "max_length": max_length,
        "seed": seed,
    }
    if stream:
        _stream(loaded, inputs, options)
        return
    results = generate(loaded, inputs, **options)
    if as_json:
        print_json(
            [
                {"input": line, "hypotheses": [vars(hypothesis) for hypothesis in hypotheses]}
                for line, hypotheses in zip(lines, results, strict=True)
            ]
        )
        return
    for hypotheses in results:
        best = hypotheses[0]
        print(best.text if best.text is not None else " ".join(map(str, best.tokens)))


def _warn_unknown(model: Any, texts: list[str]) -> None:
    import warnings

    from zoo.errors import ZooWarning
    from zoo.generation.unknown_symbols import describe_unknown

    if message := describe_unknown(model, texts):
        warnings.warn(message, ZooWarning, stacklevel=2)


def _predict(model: Any, inputs: list[str], *, as_json: bool) -> None:
    from zoo.generation.prediction import predict

    predictions = predict(model, inputs)
    if as_json:
        print_json(
            [{"input": i, **vars(p)} for i, p in zip(inputs, predictions, strict=True)],
        )
        return
    for each in predictions:
        print(f"{each.label} {each.probability:.4f}")


def _stream(model: Any, inputs: list[Any], options: dict[str, Any]) -> None:
    from zoo.generation.pipeline import stream

    for each in inputs:
        for piece in stream(model, each, **options):
            print(piece, end="", flush=True)
        print()


def _read_lines(texts: list[str], file: Path | None) -> list[str]:
    from zoo.errors import ZooError
    from zoo.files import split_lines

    if bool(texts) == (file is not None):
        raise ZooError("expected either INPUT arguments ('-' for standard input) or --file FILE")
    if file is not None:
        try:
            return split_lines(file.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ZooError(f"{file} cannot be read: {(error.strerror or '').lower()}") from None
        except UnicodeDecodeError:
            raise ZooError(f"{file} is not UTF-8 text") from None
    return split_lines(sys.stdin.read()) if texts == ["-"] else texts


def _parse_ids(line: str) -> list[int]:
    from zoo.errors import ZooError

    try:
        return [int(word) for word in line.split()]
    except ValueError:
        raise ZooError(f"'{line}' is not a list of token IDs, for example '5 17 3'") from None


def _sampler_config(name: str | None, settings: list[str], spec: Mapping[str, Any]) -> Any:
    """Return the sampler of --sampler or of the spec, with the parameters of --set."""
    from zoo.errors import ZooError

    part: Any = _parse_yaml(name, "--sampler") if name is not None else spec.get("sampler")
    if not settings:
        return part
    part = {"type": part} if isinstance(part, str) else dict(part or {})
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ZooError(f"--set {text}: expected PARAM=VALUE, for example width=4")
        part[key.removeprefix("sampler.")] = _parse_yaml(value, f"--set {text}")
    return part


def _parse_yaml(text: str, label: str) -> Any:
    from zoo.spec.document import read_option

    return read_option(text, label).data
