"""Dataset 'csv'."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic

from zoo import ZooError
from zoo.plugin import Dataset, Example, Examples, Field
from zoo_datasets.columns import (
    READERS,
    Columns,
    check_columns,
    column_names,
    declare_fields,
    decodes_files,
    make_example,
)
from zoo_datasets.csv_rows import CsvRows, require_columns

_LISTS = {
    name: lambda value, folder, read=READERS[name]: read(
        value.split() if isinstance(value, str) else value, folder
    )
    for name in ("labels", "numbers")
}
_READERS = {**READERS, **_LISTS}


class Csv(Dataset):
    """A table in a CSV or TSV file.

    The file may be compressed (``.gz``, ``.xz``, ``.bz2``). Values may contain quoted line breaks.

    Args:
        file: the file.
        fields: for each field a ``column`` and its ``content``: text (default), label, labels or
            numbers (separated by spaces, or by a text that is named as ``separator``), number,
            image or audio (the path of a file, relative to the folder of ``file``). ``columns``
            instead of ``column`` names the columns of a list of texts, such as the texts of a pair,
            or with the content messages the turns of a user and an assistant.
        delimiter: between the values; default: a tab if the file ends in ``.tsv``, else a comma.
        header: whether the first row has the names of the columns; otherwise they are 0, 1, ….
        quoting: whether values may be in double quotes.

    Fields:
        those of ``fields``.
    """

    name: ClassVar[str] = "csv"
    test_params: ClassVar[Mapping[str, Any]] = {"fields": {"target": {"column": "0"}}}

    def __init__(
        self,
        *,
        file: str,
        fields: Columns,
        delimiter: Annotated[str, pydantic.Field(min_length=1, max_length=1)] | None = None,
        header: bool = True,
        quoting: bool = True,
    ) -> None:
        check_columns(fields)
        for name, column in fields.items():
            if column.get("content") in ("texts", "messages") and not column.get("columns"):
                raise ZooError(
                    f"'{name}' is a list, which a column of a CSV file does not have; "
                    "name their 'columns'"
                )
        self.file = file
        self.columns = fields
        self.delimiter = delimiter
        self.header = header
        self.quoting = quoting

    def fields(self) -> Mapping[str, Field]:
        return declare_fields(self.columns)

    def open(self, *, evaluation: bool = False) -> Examples:
        rows = CsvRows(
            self.file, delimiter=self.delimiter, header=self.header, quoting=self.quoting
        )
        require_columns(rows, column_names(self.columns))
        return _Rows(rows, self.columns)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        text = "0,1,2\na cat,red,x y\nzwei,blue,z\n"
        (folder / "a.csv").write_text(text, encoding="utf-8")
        fields = {
            "source": {"column": "0"},
            "target": {"column": "1", "content": "label"},
            "tags": {"column": "2", "content": "labels"},
        }
        return {"file": str(folder / "a.csv"), "fields": fields}


class _Rows(Examples):
    def __init__(self, rows: CsvRows, columns: Columns) -> None:
        self.rows = rows
        self.columns = columns

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        origin, folder = self.origin(index), self.rows.path.parent
        return make_example(self.columns, self.rows[index], origin, folder, _READERS)

    def decodes_files(self) -> bool:
        return decodes_files(self.columns)

    def origin(self, index: int) -> str:
        return self.rows.origin(index)
