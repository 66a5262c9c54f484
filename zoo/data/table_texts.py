"""The texts in columns of CSV, TSV and JSON-lines files, for the training of tokenizers."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal

from zoo.data.files import FileBytes
from zoo.data.text_lines import TextLines
from zoo.errors import DataError, ZooWarning, suggest, truncate

_JSON = (".jsonl", ".ndjson", ".json")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_HEADER_CELL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")


def read_columns(
    lines: TextLines, columns: Sequence[str], delimiter: str | None = None
) -> Iterator[str]:
    """Yield the texts in some columns of a table, row by row.

    Args:
        lines: a CSV or TSV file with a header, or a file with one JSON object per line.
        columns: names of columns; ``a.b`` is the key b of the object under a. In a CSV or TSV file,
            numbers from 1 select the columns of a file without header.
        delimiter: between the values; default: a comma for ``.csv``, else a tab.

    Raises:
        DataError: if a column is missing, with the line.
    """
    suffix = FileBytes.suffix_of(lines.path)
    if suffix in _JSON:
        for index, line in enumerate(lines):
            if line.strip():
                row = _parse_json(line, lines.origin(index))
                for column in columns:
                    yield from _json_texts(row, column, lines.origin(index))
        return
    rows = _Rows(lines, delimiter or _DELIMITERS.get(suffix, "\t"))
    first = next(rows, [])
    if all(column.isdigit() and column not in first for column in columns):
        numbers = [int(column) - 1 for column in columns]
        _check_width(first, max(numbers), lines.origin(0))
        yield from (first[number] for number in numbers)
    else:
        for column in columns:
            if column not in first:
                raise DataError(f"no column '{column}'{suggest(column, first)}", lines.origin(0))
        numbers = [first.index(column) for column in columns]
    for values in rows:
        if values:
            _check_width(values, max(numbers), rows.origin())
            yield from (values[number] for number in numbers)


class _Rows:
    """The rows of a table. In tab-separated lines a quote is an ordinary character."""

    def __init__(self, lines: TextLines, delimiter: str) -> None:
        self.lines = lines
        quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        texts = (line + "\n" for line in lines)
        self._reader = csv.reader(texts, delimiter=delimiter, quoting=quoting, strict=True)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        start = self._reader.line_num
        try:
            return next(self._reader)
        except csv.Error as error:
            raise DataError(f"not valid CSV: {error}", self.lines.origin(start)) from None

    def origin(self) -> str:
        """Return file and line number of the last line of the row."""
        return self.lines.origin(self._reader.line_num - 1)


def warn_about_table(lines: TextLines, column: int | None) -> None:
    """Warn if a table is read as lines of text, or its header as a text.

    Args:
        column: the column of each line that is used, from 1; None: the whole line.
    """
    suffix, head = FileBytes.suffix_of(lines.path), [*islice(lines, 2), "", ""]
    first, second = head[0], head[1]
    if suffix in _JSON:
        names = _json_keys(first)
        what = "its lines are used as texts"
    elif suffix in _DELIMITERS:
        cells = _cells(first, suffix)
        # A table of words has them in all lines.
        is_header = _are_names(cells) and not _are_names(_cells(second, suffix))
        if column is not None and not is_header:
            return
        names = cells if is_header else [str(number) for number in range(1, len(cells) + 1)]
        what = "its lines are used as texts"
        if column is not None:
            what = f"its first line, '{truncate(first, 60)}', is used as a text; if it is a header"
    else:
        return
    chosen = ",".join(names) or "NAME"
    hint = f"choose columns with --columns, for example --columns {truncate(chosen, 80)}"
    joint = ", " if column is not None else "; "
    warnings.warn(f"{lines.path} is a table, but {what}{joint}{hint}", ZooWarning, stacklevel=2)


def _cells(line: str, suffix: str) -> list[str]:
    return next(csv.reader([line], delimiter=_DELIMITERS[suffix]), [])


def _are_names(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and all(map(_HEADER_CELL.fullmatch, cells))


def _check_width(row: Sequence[str], last: int, origin: str) -> None:
    if not 0 <= last < len(row):
        raise DataError(f"column {last + 1} is missing; the line has {len(row)}", origin)


def _parse_json(line: str, origin: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not valid JSON: {error}", origin) from None
    if not isinstance(row, dict):
        raise DataError(f"expected a JSON object, but found {type(row).__name__}", origin)
    return row


def _json_keys(line: str) -> list[str]:
    try:
        return [key for key, value in _parse_json(line, "").items() if isinstance(value, str)]
    except DataError:
        return []


def _json_texts(row: dict[str, Any], column: str, origin: str) -> Iterator[str]:
    """Yield the text of a column, or the texts of a list."""
    value: Any = row
    for key in [column] if column in row else column.split("."):
        if not isinstance(value, dict) or key not in value:
            raise DataError(f"no column '{column}'{suggest(column, row)}", origin)
        value = value[key]
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str):
            found = truncate(repr(text), 60)
            raise DataError(f"column '{column}' contains {found}; expected a text", origin)
        yield text
