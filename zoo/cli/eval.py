"""``zoo eval``: evaluate a model on data, or text files, with metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from zoo.cli.completion import complete_metrics, complete_model, complete_sampler
from zoo.cli.output import (
    DataOption,
    JsonOption,
    parse_data,
    parse_yaml,
    print_json,
    print_rows,
    print_table,
    table,
)
from zoo.cli.run_options import BaseOption, DeviceOption

EXAMPLE = "zoo eval run --data source=test.en --data target=test.de --hypotheses hyp.txt"


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A model, or the folder of a training run; without it, --hyp and --ref.",
            autocompletion=complete_model,
        ),
    ] = None,
    data: DataOption = None,
    part: Annotated[
        str | None,
        typer.Option(help="Data of the training run: test, validation or data (training data)."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Metric names, separated by commas; see 'zoo list --kind metric'. Default: those "
            "of the model's spec; bleu,chrf for text files.",
            autocompletion=complete_metrics,
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="Sampler: a name, or YAML. Default: that of the model's spec.",
            autocompletion=complete_sampler,
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME.PARAM=VALUE",
            help="Set a parameter of a metric or the sampler, for example bleu.tokenize=intl or "
            "sampler.width=8. Repeatable.",
        ),
    ] = None,
    max_length: Annotated[int, typer.Option(min=1, help="Maximum number of new tokens.")] = 128,
    batch: Annotated[int, typer.Option(min=1, help="Number of examples in a batch.")] = 32,
    max_examples: Annotated[
        int | None, typer.Option("--limit", min=1, help="Use only the first examples, this many.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option(help="Write the predicted texts to a file, one per line.")
    ] = None,
    base: BaseOption = None,
    device: DeviceOption = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sampler.")] = 0,
    hyp: Annotated[
        Path | None,
        typer.Option("--hyp", metavar="FILE", help="Text file of predictions, one per line."),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option("--ref", metavar="FILE", help="References of --hyp. Repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model on data, or compute metrics of text files, one text per line."""
    names = None if metrics is None else [n.strip() for n in metrics.split(",") if n.strip()]
    if model is None:
        only_model = {"--data": data, "--part": part, "--sampler": sampler, "--limit": max_examples}
        used = [name for name, value in {**only_model, "--hypotheses": hypotheses}.items() if value]
        if hyp is None or not ref or used:
            reason = f"{used[0]} needs a MODEL" if used else "text files need both --hyp and --ref"
            raise typer.BadParameter(reason if used or hyp or ref else _USAGE)
        _evaluate_files(hyp, ref, ["bleu", "chrf"] if names is None else names, overrides, as_json)
        return
    if hyp is not None or ref:
        raise typer.BadParameter("a MODEL cannot be combined with --hyp and --ref")
    options = {
        "data": parse_data(data or []) or None,
        "part": part,
        "metrics": names,
        "sampler": None if sampler is None else parse_yaml(sampler, "--sampler"),
        "overrides": overrides or (),
        "max_length": max_length,
        "batch": batch,
        "max_examples": max_examples,
        "base": base,
        "device": device,
        "seed": seed,
        "texts": hypotheses is not None,
    }
    _evaluate_model(model, options, hypotheses, as_json)


_USAGE = "expected a MODEL, or text files: --hyp FILE --ref FILE"


def _evaluate_files(
    hyp: Path, ref: list[Path], names: list[str], overrides: list[str] | None, as_json: bool
) -> None:
    from zoo.evaluation import evaluate_files

    scores = evaluate_files(hyp, ref, names, overrides=overrides or ())
    values = {name: value for score in scores for name, value in score.values.items()}
    signatures = {score.metric: score.signature for score in scores}
    if as_json:
        print_json({**values, "signatures": signatures})
    else:
        _print([(score.values, score.signature) for score in scores])


def _evaluate_model(
    model: str, options: Mapping[str, Any], hypotheses: Path | None, as_json: bool
) -> None:
    from zoo.cli.progress import task_progress
    from zoo.evaluation.evaluating import evaluate

    with task_progress() as progress:
        result = evaluate(model, progress=progress, **options)
    if hypotheses is not None:
        _write_lines(hypotheses, result.hypotheses)
    if as_json:
        more = {"examples": result.examples, "seconds": result.seconds, "skipped": result.skipped}
        used = {"data": result.data, "sampler": result.sampler, "details": result.details}
        print_json({**result.values, "signatures": result.signatures, **more, **used})
        return
    scores = {
        label: {n: result.values[n] for n in names} for label, names in result.by_metric.items()
    }
    _print([(values, result.signatures.get(label, "")) for label, values in scores.items()])
    for title, rows in result.details.items():
        _print_details(title, rows)
    print(f"{result.examples:,} examples in {result.seconds:.1f} s")
    for reason, count in result.skipped.items():
        print(f"{count:,} examples skipped: {reason}")


def _print(results: list[tuple[Mapping[str, float], str]]) -> None:
    from rich.text import Text

    columns = ("metric", "value", "signature")
    rows = table(*columns, no_wrap=columns, right=("value",))
    for values, signature in results:
        for name, value in values.items():
            rows.add_row(Text(name), f"{value:.4f}", Text(signature))
            signature = ""  # shown once per metric
    print_table(rows)


def _print_details(title: str, details: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table of values; counts are integers."""
    from rich.markup import escape

    columns = [escape(name) for name in next(iter(details.values()))]
    rows = [
        [
            name,
            *(str(value) if isinstance(value, int) else f"{value:.4f}" for value in row.values()),
        ]
        for name, row in details.items()
    ]
    print(f"\n{title}")
    print_rows(["name", *columns], rows, no_wrap=["name", *columns], right=columns)


def _format_value(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _write_lines(path: Path, lines: list[str]) -> None:
    """Write texts to a file, one per line; line breaks inside a text become spaces."""
    from zoo.files import atomic_write

    text = "".join(f"{' '.join(line.splitlines())}\n" for line in lines)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
