"""``zoo generate``: generate text with a saved model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.chat import converse, parse_conversation
from zoo.cli.completion import complete_filter, complete_sampler
from zoo.cli.inputs import (
    FileOption,
    InputLines,
    InputsArgument,
    check_texts,
    parse_ids,
    read_inputs,
    warn_unknown,
)
from zoo.cli.output import JsonOption, ModelArgument, parse_yaml, print_json
from zoo.cli.progress import activity, task_progress
from zoo.cli.run_options import BaseOption, DeviceOption, default_device

if TYPE_CHECKING:
    from zoo.generation.pipeline import Hypothesis

_BATCH = 32
EXAMPLE = "zoo generate model.safetensors 'Ein Mann schläft .' --sampler beam --set width=4"


def command(
    model: ModelArgument,
    texts: InputsArgument = None,
    file: FileOption = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="Sampler; default: the sampler of the model's spec.",
            autocompletion=complete_sampler,
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Filter: a name, or '{type: no-repeat-ngram, n: 3}'. Repeatable.",
            autocompletion=complete_filter,
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
    prompt: Annotated[
        str | None,
        typer.Option(
            help="Tokens that the output of a model with a source starts with, for example the "
            "target language: de_DE. With --ids, token IDs. Default: those of the model's spec.",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of new tokens; default: 64, with --chat 512."),
    ] = None,
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
    chat: Annotated[
        bool,
        typer.Option(
            "--chat",
            help="Apply the model's chat template: to each INPUT, a message or a JSON list of "
            "messages; without INPUT, to the lines that you type.",
        ),
    ] = False,
    base: BaseOption = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generate from source texts, images or audio, or continue prompts.

    Models that predict classes print what 'zoo predict' prints. A warning names symbols that the
    model does not know.
    """
    from zoo.cli.predict import predict_lines, print_predictions
    from zoo.generation.prediction import can_predict
    from zoo.hub.models import load

    if chat and ids:
        raise typer.BadParameter("--chat and --ids exclude each other")
    is_conversation = chat and not texts and file is None
    if as_json and (stream or is_conversation):
        raise typer.BadParameter("--json prints whole outputs, not a stream or a conversation")
    read = InputLines([], None) if is_conversation else read_inputs(texts or [], file)
    lines = read.lines
    with read.report_lines():
        inputs = [_parse_input(line, n, ids=ids, chat=chat) for n, line in enumerate(lines, 1)]
    loaded = load(model, base=base, device=default_device(device))
    if not ids:
        check_texts(loaded, read)
    if (
        not chat
        and loaded.generation_input is None
        and (can_predict(loaded) or can_predict(loaded, "position"))
    ):
        with read.report_lines():
            rows = predict_lines(loaded, lines)
        print_predictions(rows, as_json=as_json)
        return
    if not ids and not chat:
        warn_unknown(loaded, lines)
    options: dict[str, Any] = {
        "sampler": _sampler_config(sampler, settings or [], loaded.spec or {}),
        "filters": None if filters is None else [parse_yaml(text, "--filter") for text in filters],
        "prompt": parse_ids(prompt) if ids and prompt is not None else prompt,
        "max_length": max_length or (512 if chat else 64),
        "seed": seed,
    }
    if is_conversation:
        converse(loaded, options)
        return
    if stream:
        with read.report_lines():
            _stream(loaded, inputs, options)
        return
    with read.report_lines():
        results = _generate(loaded, inputs, options)
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


def _generate(model: Any, inputs: list[Any], options: dict[str, Any]) -> list[list[Hypothesis]]:
    """Return the hypotheses of each input; with more than one batch, a bar counts the inputs."""
    from zoo.generation.pipeline import generate_batches

    results: list[list[Hypothesis]] = []
    shown = activity("generating") if len(inputs) <= _BATCH else nullcontext()
    with shown, task_progress() if len(inputs) > _BATCH else nullcontext() as report:
        for found in generate_batches(model, inputs, _BATCH, **options):
            results += found
            if report is not None:
                report("generating", len(results), len(inputs))
    return results


def _stream(model: Any, inputs: list[Any], options: dict[str, Any]) -> None:
    from zoo.errors import InputError
    from zoo.generation.pipeline import stream

    for number, each in enumerate(inputs, 1):
        try:
            pieces = stream(model, each, **options)
        except InputError as error:
            raise InputError(error.message, number) from None
        for piece in pieces:
            print(piece, end="", flush=True)
        print()


def _parse_input(line: str, number: int, *, ids: bool, chat: bool) -> Any:
    if chat:
        return parse_conversation(line, number)
    return parse_ids(line) if ids else line


def _sampler_config(name: str | None, settings: list[str], spec: Mapping[str, Any]) -> Any:
    """Return the sampler of --sampler or of the spec, with the parameters of --set."""
    from zoo.errors import ZooError

    part: Any = parse_yaml(name, "--sampler") if name is not None else spec.get("sampler")
    if not settings:
        return part
    part = {"type": part} if isinstance(part, str) else dict(part or {})
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ZooError(f"--set {text}: expected PARAM=VALUE, for example width=4")
        part[key.removeprefix("sampler.")] = parse_yaml(value, f"--set {text}")
    return part
