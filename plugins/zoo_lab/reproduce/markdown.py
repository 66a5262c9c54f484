"""Text of Markdown pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield markdown_row(columns)
    yield "|" + "---|" * len(columns)
    yield from (markdown_row(row) for row in rows)
