"""Fields of examples from the columns of a table."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
import pydantic
from pydantic import ConfigDict
from typing_extensions import TypedDict

from zoo import DataError, ZooError
from zoo.plugin import Example, Field, TensorSchema, read_audio, read_image, suggest, truncate

ColumnContent = Literal[
    "text", "texts", "label", "labels", "number", "numbers", "messages", "image", "audio"
]


class Column(TypedDict):
    """A column and the type of its values; by default text.

    Several ``columns`` are a list of texts, such as the two texts of a pair; with the content
    ``messages`` they are the turns of a user and an assistant. ``image`` and ``audio`` are paths of
    files, relative to the folder of the table. ``separator`` is the text between labels or numbers
    that are in one text.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    column: NotRequired[str | None]  # None: without that of an extended spec
    columns: NotRequired[Annotated[list[str], pydantic.Field(min_length=1)] | None]
    content: NotRequired[ColumnContent]
    separator: NotRequired[Annotated[str, pydantic.Field(min_length=1)]]


Columns = dict[str, Column]


_NUMBERS = {
    "number": Field("array", TensorSchema(("B",), "float")),
    "numbers": Field("array", TensorSchema(("B", "V"), "float")),
}


def check_columns(columns: Columns) -> None:
    """Raise ZooError if a field has neither ``column`` nor ``columns``, or keys that exclude each
    other."""
    for name, column in columns.items():
        has_one, has_several = column.get("column") is not None, bool(column.get("columns"))
        if has_one and has_several:
            raise ZooError(
                f"field '{name}' has both 'column' and 'columns'; set the one of an extended spec "
                "to null"
            )
        if not has_one and not has_several:
            raise ZooError(f"field '{name}' needs either 'column' or 'columns'")
        if "separator" in column and column.get("content") not in ("labels", "numbers"):
            raise ZooError(
                f"field '{name}' has a separator, so its content must be labels or numbers"
            )
        if has_several and column.get("content", "texts") not in ("texts", "messages"):
            raise ZooError(
                f"field '{name}' has several columns, so its content is texts or messages"
            )


def column_names(columns: Columns) -> list[str]:
    """Return the names of all columns that are used."""
    return [name for each in columns.values() for name in each.get("columns") or [_name(each)]]


def declare_fields(columns: Columns) -> dict[str, Field]:
    """Return the fields of the examples."""
    contents = {name: _content(column) for name, column in columns.items()}
    return {name: _NUMBERS.get(content) or Field(content) for name, content in contents.items()}


def decodes_files(columns: Columns) -> bool:
    """Return whether a field is an image or a recording."""
    return any(_content(column) in ("image", "audio") for column in columns.values())


def _content(column: Column) -> Any:
    return column.get("content", "texts" if column.get("columns") else "text")


def _name(column: Column) -> str:
    name = column["column"]
    assert name is not None  # see check_columns
    return name


def lookup(row: Mapping[str, Any], column: str, origin: str) -> Any:
    """Return the value of a column; ``a.b`` is the key b of the value of column a."""
    if column in row:
        return row[column]
    value: Any = row
    for key in column.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise missing_column(column, row, origin)
        value = value[key]
    return value


def missing_column(column: str, available: Iterable[str], origin: str) -> DataError:
    """Return the error of a column that a table does not have."""
    return DataError(f"no column '{column}'{suggest(column, map(str, available))}", origin)


def make_example(
    columns: Columns, row: Mapping[str, Any], origin: str, folder: Path, readers: "Readers"
) -> Example:
    """Return the example of a row.

    Args:
        folder: where the paths of images and audio start.
        readers: functions from a value in the table to the value of a field, by content.
    """
    example = {}
    for name, column in columns.items():
        content = _content(column)
        if several := column.get("columns"):
            texts = [_read(row, each, "text", origin, folder, readers) for each in several]
            example[name] = _to_messages(texts) if content == "messages" else texts
        else:
            separator = column.get("separator")
            example[name] = _read(row, _name(column), content, origin, folder, readers, separator)
    return example


def _to_messages(texts: list[str]) -> list[dict[str, str]]:
    roles = itertools.cycle(("user", "assistant"))
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]


def _read(
    row: Mapping[str, Any],
    column: str,
    content: str,
    origin: str,
    folder: Path,
    readers: "Readers",
    separator: str | None = None,
) -> Any:
    value = lookup(row, column, origin)
    try:
        if separator is not None and isinstance(value, str):
            parts = [part.strip() for part in value.split(separator)] if value.strip() else []
            return readers[content](parts, folder)
        return readers[content](value, folder)
    except ValueError:
        raise DataError(
            f"column '{column}' contains {truncate(repr(value), 60)}; expected "
            f"{_EXPECTED[content]}",
            origin,
        ) from None
    except DataError as error:  # of the file that the value names, or of its content
        named = f"{origin}: {error.origin}" if error.origin else origin
        raise DataError(error.message, named) from None


Readers = Mapping[str, Callable[[Any, Path], Any]]
"""Functions that raise ValueError if the value in the table does not have the type."""

_EXPECTED = {
    "text": "a text that is not empty",
    "texts": "a list of texts",
    "label": "an integer, or a text that is not empty and has no spaces at its ends",
    "labels": "a list of labels, which are integers or texts without spaces at their ends",
    "number": "a finite number",
    "numbers": "finite numbers",
    "messages": "a list of messages, objects with 'role' and 'content'",
    "image": "the path of an image",
    "audio": "the path of an audio file",
}


def read_text(value: Any, folder: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def read_label(value: Any, folder: Path) -> str | int:
    if isinstance(value, bool) or not (isinstance(value, int) or str(value).strip() == value != ""):
        raise ValueError
    return value  # type: ignore[no-any-return]


def read_number(value: Any, folder: Path) -> Any:
    number = float(value) if isinstance(value, str | int | float) else math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return np.float32(number)


def read_messages(value: Any, folder: Path) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise ValueError
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError
        if not isinstance(message.get("content"), str):
            raise ValueError
    return value


def read_list(
    item: Callable[[Any, Path], Any], *, may_be_empty: bool = False
) -> Callable[[Any, Path], list[Any]]:
    """Return the reader of a list of values."""

    def read(value: Any, folder: Path) -> list[Any]:
        if not isinstance(value, list) or not (value or may_be_empty):
            raise ValueError
        return [item(each, folder) for each in value]

    return read


READERS: Readers = {
    "text": read_text,
    "texts": read_list(read_text),
    "label": read_label,
    "labels": read_list(read_label, may_be_empty=True),  # an item may have none of the labels
    "messages": read_messages,
    "number": read_number,
    "numbers": lambda value, folder: np.array(read_list(read_number)(value, folder)),
    "image": lambda value, folder: read_image(folder / read_text(value, folder)),
    "audio": lambda value, folder: read_audio(folder / read_text(value, folder)),
}
