"""``zoo generate``: a model file speaks."""

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
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts; '-' reads standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read texts from a file, one a line.")] = None,
    sampler: Annotated[
        str | None, typer.Option(help="How tokens are chosen; the spec's sampler if not set.")
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help="As no-repeat-ngram, or '{type: …, n: 3}'. Repeatable."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PARAM=VALUE", help="Set a parameter of the sampler."),
    ] = None,
    max_length: Annotated[int, typer.Option(min=1, help="New tokens at the most.")] = 64,
    seed: Annotated[int | None, typer.Option(help="What draws come from.")] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Texts are token ids, for any model.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Print tokens as they come.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let a model answer texts, or go on with them, by any sampler and filters."""
    from zoo.generation.pipeline import generate
    from zoo.hub.models import load

    lines = _read_lines(texts or [], file)
    inputs: list[Any] = [_parse_ids(line) for line in lines] if ids else lines
    loaded = load(model)
    options: dict[str, Any] = {
        "sampler": _sampler_config(sampler, settings or [], loaded.spec or {}),
        "filters": None if filters is None else [_parse_yaml(text, "--filter") for text in filters],
        "max_length": max_length,
        "seed": seed,
    }
    if stream:
        _stream(loaded, inputs, options)
        return
    answers = generate(loaded, inputs, **options)
    if as_json:
        print_json(
            [
                {"input": line, "answers": [vars(answer) for answer in ranked]}
                for line, ranked in zip(lines, answers, strict=True)
            ]
        )
        return
    for ranked in answers:
        best = ranked[0]
        print(best.text if best.text is not None else " ".join(map(str, best.tokens)))


def _stream(model: Any, inputs: list[Any], options: dict[str, Any]) -> None:
    from zoo.generation.pipeline import stream

    for each in inputs:
        for piece in stream(model, each, **options):
            print(piece, end="", flush=True)
        print()


def _read_lines(texts: list[str], file: Path | None) -> list[str]:
    from zoo.errors import ZooError

    if bool(texts) == (file is not None):
        raise ZooError("give texts, or --file FILE, or - for standard input; one of them")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ZooError(f"{file} cannot be read: {(error.strerror or '').lower()}") from None
        except UnicodeDecodeError:
            raise ZooError(f"{file} is not UTF-8 text") from None
    return sys.stdin.read().splitlines() if texts == ["-"] else texts


def _parse_ids(line: str) -> list[int]:
    from zoo.errors import ZooError

    try:
        return [int(word) for word in line.split()]
    except ValueError:
        raise ZooError(f"'{line}' is no list of token ids, as '5 17 3'") from None


def _sampler_config(name: str | None, settings: list[str], spec: Mapping[str, Any]) -> Any:
    """The named sampler, or the spec's, with the parameters that --set gives."""
    from zoo.errors import ZooError

    own = spec.get("sampler")
    part: Any = _parse_yaml(name, "--sampler") if name is not None else own
    if not settings:
        return part
    part = {"type": part} if isinstance(part, str) else dict(part or {})
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ZooError(f"--set {text} should read PARAM=VALUE, for example width=4")
        part[key.removeprefix("sampler.")] = _parse_yaml(value, f"--set {text}")
    return part


def _parse_yaml(text: str, label: str) -> Any:
    from zoo.spec.document import read_text

    return read_text(text, label).data
