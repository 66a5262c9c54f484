"""Dataset 'json-lines'."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo import DataError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines
from zoo_datasets.columns import (
    READERS,
    Columns,
    check_columns,
    column_names,
    declare_fields,
    decodes_files,
    lookup,
    make_example,
)


class JsonLines(Dataset):
    """A file with one JSON object per line.

    The file may be compressed (``.gz``, ``.xz``, ``.bz2``).

    Args:
        file: the file.
        fields: for each field a ``column``, the key in the objects (``a.b`` for the key b of the
            object under a), and its ``content``: text (default), texts (a list), label, labels,
            number, numbers (a list), image or audio (the path of a file, relative to the folder of
            ``file``), or messages (a list of objects with ``role`` and ``content``). ``columns``
            instead of ``column`` names the keys of a list of texts, such as the texts of a pair, or
            with the content messages the turns of a user and an assistant.

    Fields:
        those of ``fields``.
    """

    name: ClassVar[str] = "json-lines"
    test_params: ClassVar[Mapping[str, Any]] = {"fields": {"target": {"column": "text"}}}

    def __init__(self, *, file: str, fields: Columns) -> None:
        check_columns(fields)
        self.file = file
        self.columns = fields

    def fields(self) -> Mapping[str, Field]:
        return declare_fields(self.columns)

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Objects(TextLines(self.file), self.columns)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        first = '{"text": "a cat", "tags": ["x", "y"], "id": 3}'
        text = first + '\n{"text": "ü", "tags": ["x"], "id": 4}\n'
        (folder / "a.jsonl").write_text(text, encoding="utf-8")
        fields = {
            "source": {"column": "text"},
            "words": {"column": "tags", "content": "texts"},
            "target": {"column": "id", "content": "label"},
        }
        return {"file": str(folder / "a.jsonl"), "fields": fields}


class _Objects(Examples):
    def __init__(self, lines: TextLines, columns: Columns) -> None:
        self.lines = lines
        self.columns = columns
        if not len(lines):
            raise DataError("the file has no lines", str(lines.path))
        try:
            first = self._read(0)
        except DataError:
            return  # raised again when the example is read
        for column in column_names(columns):
            lookup(first, column, self.origin(0))

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        origin, folder = self.origin(index), self.lines.path.parent
        return make_example(self.columns, self._read(index), origin, folder, READERS)

    def decodes_files(self) -> bool:
        return decodes_files(self.columns)

    def origin(self, index: int) -> str:
        return self.lines.origin(index)

    def _read(self, index: int) -> dict[str, Any]:
        try:
            row = json.loads(self.lines.require(index))
        except (ValueError, RecursionError) as error:
            raise DataError(f"not valid JSON: {error}", self.origin(index)) from None
        if not isinstance(row, dict):
            raise DataError(
                f"expected a JSON object, but found {type(row).__name__}", self.origin(index)
            )
        return row
