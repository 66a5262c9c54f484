"""``zoo eval``: evaluate text files with metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, print_json, print_table, table

if TYPE_CHECKING:
    from zoo.evaluation import Score

EXAMPLE = "zoo eval --hyp H.txt --ref R1.txt --ref R2.txt --metrics bleu,cider,meteor-1.5 --json"


def command(
    hyp: Annotated[
        Path, typer.Option("--hyp", metavar="FILE", help="Predictions, one per line, UTF-8.")
    ],
    ref: Annotated[
        list[Path],
        typer.Option("--ref", metavar="FILE", help="References, in the same order. Repeatable."),
    ],
    metrics: Annotated[
        str, typer.Option(help="Metric names, separated by commas; see 'zoo list --kind metric'.")
    ] = "bleu,chrf",
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME.PARAM=VALUE",
            help="Set a parameter of a metric, for example bleu.tokenize=intl. Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute metrics of predicted texts and their references, one text per line."""
    from zoo.evaluation import evaluate

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    scores = evaluate(hyp, ref, names, overrides=overrides or ())
    if as_json:
        values = {name: value for score in scores for name, value in score.values.items()}
        signatures = {score.metric: score.signature for score in scores}
        print_json({**values, "signatures": signatures})
    else:
        _print(scores)


def _print(scores: list[Score]) -> None:
    from rich.text import Text

    columns = ("metric", "value", "signature")
    rows = table(*columns, no_wrap=columns, right=("value",))
    for score in scores:
        signature = score.signature
        for name, value in score.values.items():
            rows.add_row(Text(name), f"{value:.4f}", Text(signature))
            signature = ""  # shown once per metric
    print_table(rows)
