"""What the verbs share: options that mean the same everywhere, and ways to print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Set = Annotated[
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
Catalogues = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", metavar="FILE", help="A further catalogue. Repeatable."),
]

_WIDTH_WITHOUT_TERMINAL = 120


def console() -> Console:
    """Where tables go; wide enough not to cut lines when there is no terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def human(count: int) -> str:
    """Bytes as people say them."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
