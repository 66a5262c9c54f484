"""Layout of tables: on a terminal as wide as it is, otherwise a line for each row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
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
