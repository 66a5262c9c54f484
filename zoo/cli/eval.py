"""``zoo eval``: text files scored by metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, print_json, print_table, table

if TYPE_CHECKING:
    from zoo.evaluation import Score

EXAMPLE = "zoo eval --hyp H.txt --ref R1.txt --ref R2.txt --metrics bleu,cider,meteor --json"


def command(
    hyp: Annotated[
        Path, typer.Option("--hyp", metavar="FILE", help="What was said, one text a line, UTF-8.")
    ],
    ref: Annotated[
        list[Path],
        typer.Option(
            "--ref", metavar="FILE", help="What was wanted, in the same lines. Repeatable."
        ),
    ],
    metrics: Annotated[
        str, typer.Option(help="Names joined by commas; 'zoo list --kind metric' has them.")
    ] = "bleu,chrf",
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME.PARAM=VALUE",
            help="Set a metric's parameter, as bleu.tokenize=intl. Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score text files, on the scale of each metric's reference library, with its signature."""
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
            signature = ""  # once for all values of a metric
    print_table(rows)
