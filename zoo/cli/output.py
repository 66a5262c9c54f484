"""What the verbs share: options that mean the same everywhere, and ways to print."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.KEY=VALUE", help="Override a value of the spec. Repeatable."
    ),
]
SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC", help="A spec file, or the name of a shipped spec.")
]

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model file or folder, a catalogue's name, or ORG/NAME or ORG/NAME@REVISION on "
        "the Hub. What exists here under the name wins.",
    ),
]
CataloguesOption = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", metavar="FILE", help="A further catalogue. Repeatable."),
]

_WIDTH_WITHOUT_TERMINAL = 120
_NO_LIMIT = 10_000


def console() -> Console:
    """Where text for people goes; a reader that went away is told to the caller."""
    from rich.console import Console

    class Raising(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls this while it handles the error

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Raising(width=width, highlight=False)


def table(*columns: str, no_wrap: Collection[str] = (), right: Collection[str] = ()) -> Table:
    """An empty table; the columns named in `no_wrap` are never broken, those in `right` numbers."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(
            column,
            style="cyan" if column in ("name", "component", "metric", "word") else None,
            justify="right" if column in right else "left",
            no_wrap=column in no_wrap,
            overflow="fold",
        )
    return made


def print_table(rows: Table) -> None:
    """As wide as the terminal, or as what may not be broken needs; in pipes, a line a row."""
    from rich.measure import Measurement

    out = console()
    needed = Measurement.get(out, out.options.update(width=_NO_LIMIT), rows)
    out.width = max(out.width, needed.minimum) if out.is_terminal else needed.maximum
    out.print(rows, crop=False)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def format_bytes(count: int) -> str:
    """Bytes as people say them."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
