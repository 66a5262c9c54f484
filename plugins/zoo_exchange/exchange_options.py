"""Options and plan table of `zoo import` and `zoo export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_map
from zoo.cli.output import print_json, print_table, table
from zoo.cli.terminal import console
from zoo.errors import one_line

if TYPE_CHECKING:
    from zoo_exchange.mapping import TensorPlan

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
