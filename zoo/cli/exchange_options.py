"""Options, plan table and progress bar of `zoo import` and `zoo export`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_map
from zoo.cli.output import print_json, print_table, table
from zoo.cli.terminal import console
from zoo.cli.verbosity import shows_progress
from zoo.errors import one_line

if TYPE_CHECKING:
    from zoo.exchange.mapping import TensorPlan

MIN_PROGRESS_BYTES = 100_000_000
"""Size from which a progress bar is shown."""

MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="A map file, or the name of a map of a plugin.",
        autocompletion=complete_map,
    ),
]
DtypeOption = Annotated[
    str | None, typer.Option(help="float32, bfloat16, float16 or float64; by default unchanged.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the conversion table and write nothing.")
]


def print_plan(plan: TensorPlan, *, as_json: bool) -> None:
    """Print the conversion table."""
    from rich.text import Text

    if as_json:
        print_json(plan.as_json())
        return
    columns = ("target", "shape", "dtype", "from", "by")
    rows = table(*columns, no_wrap=columns[:4])
    for row in plan.as_json()["tensors"]:
        cells = (
            *(row["target"], str(row["shape"]), row["dtype"]),
            *("\n".join(map(one_line, row["sources"])), ", ".join(row["operations"])),
        )
        rows.add_row(*map(Text, cells))
    print_table(rows)
    out = console()
    for name in plan.dropped:
        out.print(f"dropped: {name}", markup=False)
    for place in plan.unused:
        out.print(f"unused rule: {place}", markup=False)


@contextlib.contextmanager
def progress_bar(total: int, text: str) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar on standard error, with a text, for many bytes."""
    if total < MIN_PROGRESS_BYTES or not shows_progress():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(text), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)
