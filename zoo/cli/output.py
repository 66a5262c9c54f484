"""Options that several commands share, and functions that print."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.completion import complete_model, complete_spec
from zoo.cli.terminal import console
from zoo.errors import SpecError, ZooError, format_bytes as format_bytes, one_line

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from zoo.interfaces import Model


import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Column, Table


_GAP = 2
"""Spaces between two columns."""
_MIN_TEXT = 24
"""The width below which a column of text is printed below its row instead."""
_INDENT = "    "


def print_plain(out: Console, rows: Table) -> None:
    """Print a line for each row, without styles and without spaces at the end."""
    from rich.measure import Measurement

    width = Measurement.get(out, out.options.update(width=100_000), rows).maximum
    for line in out.render_lines(rows, out.options.update(width=width), pad=False):
        print("".join(segment.text for segment in line).rstrip())


def print_fitted(out: Console, rows: Table) -> None:
    """Print a table that is as wide as the console; no word is broken.

    If a column of text would be too narrow, it is printed below the other columns of its row.
    """
    widths = _fit_columns(out, rows.columns)
    if widths is not None:
        for column, width in zip(rows.columns, widths, strict=True):
            column.width = width
        out.print(rows, crop=False)
        return
    for line in _list_lines(out, rows):
        out.print(line, markup=False, soft_wrap=True)


def _fit_columns(out: Console, columns: Sequence[Column]) -> list[int] | None:
    """Return the width of each column, or None if a column would be too narrow."""
    ranges = [_measure(out, column) for column in columns]
    available = out.width - _GAP * (len(columns) - 1)
    widths = [
        longest if column.no_wrap else max(word, min(longest, _MIN_TEXT))
        for column, (word, longest) in zip(columns, ranges, strict=True)
    ]
    if all(column.no_wrap for column in columns):
        return widths
    rest = available - sum(widths)
    if rest < 0:
        return None
    needs = sorted((longest - widths[i], i) for i, (_, longest) in enumerate(ranges))
    for number, (need, index) in enumerate(needs):
        share = min(need, rest // (len(needs) - number))
        widths[index] += share
        rest -= share
    return widths


def _measure(out: Console, column: Column) -> tuple[int, int]:
    """Return the width of the longest word and of the longest line of a column."""
    from rich.measure import Measurement

    wide = out.options.update(width=100_000)
    found = [Measurement.get(out, wide, cell) for cell in _cells(column)]
    return max(each.minimum for each in found), max(each.maximum for each in found)


def _cells(column: Column) -> list[RenderableType]:
    return [column.header, *column.cells]


def _list_lines(out: Console, rows: Table) -> Iterator[str]:
    """Yield for each row a line of its short cells, and its texts below."""
    table = [[str(cell) for cell in _cells(column)] for column in rows.columns]
    short = [i for i, column in enumerate(rows.columns) if column.no_wrap] or [0]
    texts = [i for i in range(len(table)) if i not in short]
    widths = [max(map(len, table[i])) for i in short]
    for number in range(len(table[0])):
        cells = zip(short, widths, strict=True)
        line = "  ".join(table[i][number].ljust(width) for i, width in cells)
        yield line.rstrip()
        for i in texts if number else ():
            label = f"{table[i][0]}: " if len(texts) > 1 else ""
            if table[i][number] not in ("", "-"):
                yield _wrap(label + table[i][number], out.width)


def _wrap(text: str, width: int) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.KEY=VALUE", help="Override a value of the spec. Repeatable."
    ),
]
SpecArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="A spec file, or the name of a spec of a plugin.",
        autocompletion=complete_spec,
    ),
]

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model file or folder, a name in the catalogue, or ORG/NAME or ORG/NAME@REVISION on "
        "the Hub. An existing path takes precedence, except over a shipped model: write ./NAME.",
        autocompletion=complete_model,
    ),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="KEY=VALUE",
        help="A parameter of the dataset, for example source=test.en; type=NAME for another "
        "dataset. Default: the test data of the training run. Repeatable.",
    ),
]
CataloguesOption = Annotated[
    list[Path] | None,
    typer.Option("--catalogue", metavar="FILE", help="An additional catalogue. Repeatable."),
]


def table(*columns: str, no_wrap: Collection[str] = (), right: Collection[str] = ()) -> Table:
    """Return an empty table; columns in `right` are right-aligned."""
    from rich.table import Table

    created = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        created.add_column(
            column,
            style="cyan" if column in ("name", "component", "metric", "word") else None,
            justify="right" if column in right else "left",
            no_wrap=column in no_wrap,
            overflow="fold",
        )
    return created


def print_table(rows: Table) -> None:
    """Print a table as wide as the terminal; otherwise a line for each row."""

    out = console()
    if out.is_terminal:
        print_fitted(out, rows)
    else:
        print_plain(out, rows)


def print_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    no_wrap: Collection[str] = (),
    right: Collection[str] = (),
) -> None:
    """Print rows of text as a table.

    Args:
        columns: the headers.
        rows: one cell for each column; strings are printed literally, in one line, without markup.
        no_wrap: columns that are never broken into lines.
        right: columns that are right-aligned.
    """
    from rich.text import Text

    created = table(*columns, no_wrap=no_wrap, right=right)
    for row in rows:
        created.add_row(*(Text(one_line(cell)) if isinstance(cell, str) else cell for cell in row))
    print_table(created)


def parse_data(texts: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of the option --data."""
    data: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ZooError(f"--data {text}: expected KEY=VALUE, for example source=test.en")
        data[key] = parse_yaml(value, f"--data {text}")
    return data


def parse_yaml(text: str, label: str) -> Any:
    """Return the value of an option in YAML; `label` names the option in errors."""
    from zoo.spec.document import read_option

    return read_option(text, label).data


def print_json(data: Any) -> None:
    """Print data as indented JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_saved(file: Path, model: Model, size: int, *, as_json: bool) -> None:
    """Print the file, the number of parameters and the size of a model that was saved."""
    count = sum(parameter.numel() for parameter in model.parameters())
    if as_json:
        print_json({"file": str(file), "parameters": count, "bytes": size})
    else:
        print(f"{file}: {count:,} parameters, {format_bytes(size)}")


def require_readable(spec: str) -> None:
    """Raise SpecError if a spec file does not exist or is not YAML, before torch is imported."""
    from zoo.spec.document import read_file

    if spec.endswith((".yaml", ".yml")) and (os.path.isfile(spec) or not os.path.exists(spec)):
        read_file(spec)


@contextmanager
def spec_errors(*, as_json: bool) -> Iterator[None]:
    """Print the problems of a SpecError raised in the block as JSON, and exit with code 1.

    Args:
        as_json: if False, the error is raised.
    """
    try:
        yield
    except SpecError as error:
        if not as_json:
            raise
        print_json({"ok": False, "errors": [problem.as_json() for problem in error.problems]})
        raise typer.Exit(1) from None
