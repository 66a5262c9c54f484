"""Random access to the rows of CSV files."""

import csv
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from zoo import DataError
from zoo.plugin import FileBytes, TextLines, truncate
from zoo_datasets.columns import missing_column


class CsvRows:
    """The rows of a CSV file with their column names; values may contain quoted line breaks.

    Args:
        path: the file.
        delimiter: between the values; None: a tab if the file ends in ``.tsv``, otherwise a comma.
        header: whether the first row has the names of the columns; otherwise they are 0, 1, ….
        quoting: whether values may be in double quotes.

    Raises:
        DataError: if the file is missing, has no rows, or a quote is not closed.
    """

    def __init__(
        self,
        path: str,
        *,
        delimiter: str | None = None,
        header: bool = True,
        quoting: bool = True,
    ) -> None:
        self._lines = TextLines(path)
        self.path = self._lines.path
        tabs = FileBytes.suffix_of(self.path) == ".tsv"
        self._delimiter = delimiter or ("\t" if tabs else ",")
        self._quoting = quoting
        self._starts = array("Q")  # the first line of each row, and the number of lines
        self._index_rows()
        if len(self._starts) < 1 + header + 1:
            raise DataError("the file has no rows", str(self.path))
        first = self._cells(0)
        self.columns = first if header else [str(number) for number in range(len(first))]
        self._header = int(header)
        repeated = next((name for name, n in Counter(self.columns).items() if n > 1), None)
        if repeated is not None:
            raise DataError(f"column '{truncate(repeated, 60)}' occurs twice", self.origin(-1))

    def __len__(self) -> int:
        return len(self._starts) - 1 - self._header

    def __getitem__(self, index: int) -> dict[str, str]:
        cells = self._cells(index + self._header)
        if len(cells) != len(self.columns):
            raise DataError(
                f"the row has {len(cells)} values, but there are {len(self.columns)} columns",
                self.origin(index),
            )
        return dict(zip(self.columns, cells, strict=True))

    def __iter__(self) -> Iterator[dict[str, str]]:
        return (self[index] for index in range(len(self)))

    def origin(self, index: int) -> str:
        """Return file and line number of a row."""
        return self._lines.origin(self._starts[index + self._header])

    def split_header(self, delimiter: str) -> list[str]:
        """Return the cells of the first line with another delimiter."""
        line = next(iter(self._lines.read(0, 1)))
        return [cell.strip('"') for cell in line.split(delimiter)]

    def _index_rows(self) -> None:
        """Set the first line of each row; empty lines between rows are part of the row before."""
        # Latin-1 maps every byte to a character, so that undecodable rows have an index, too.
        lines = (line.decode("latin-1") + "\n" for line in self._lines.raw())
        reader, start = self._reader(lines), 0
        try:
            for cells in reader:
                if cells:
                    self._starts.append(start)
                start = reader.line_num
        except csv.Error as error:
            hint = "if quotes are ordinary characters, set quoting: false"
            if "field limit" in str(error):
                hint = f"{hint}; for longer texts use the dataset json-lines"
            elif "new-line" in str(error):
                hint = "convert the line endings to line feeds"
            raise DataError(f"not valid CSV: {error}; {hint}", self._lines.origin(start)) from None
        self._starts.append(start)

    def _cells(self, row: int) -> list[str]:
        lines = self._lines.read(self._starts[row], self._starts[row + 1])
        cells: list[str] = next(self._reader(line + "\n" for line in lines))
        return cells

    def _reader(self, lines: Iterator[str]) -> Any:  # has line_num
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self._quoting else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self._delimiter, quoting=quoting, strict=True)


def require_columns(rows: CsvRows, names: Sequence[str]) -> None:
    """Raise DataError if the file does not have one of the columns."""
    for name in names:
        if name not in rows.columns:
            for other in ",;\t|":
                if name in rows.split_header(other):
                    raise DataError(
                        f"no column '{name}': the columns are separated by {other!r}; set "
                        f"delimiter: {json.dumps(other)}",
                        rows.origin(-1),
                    )
            raise missing_column(name, rows.columns, rows.origin(-1))
