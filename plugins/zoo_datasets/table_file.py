"""Tables in Parquet and Arrow files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zoo import DataError
from zoo.plugin import MissingExtra, suggest, truncate

_OTHERS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json-lines",
    ".json": "json-lines",
    ".txt": "plain-text",
}
"""The datasets that read other files."""


class _LabelNames(NamedTuple):
    """The names of the labels of a column."""

    names: Sequence[str]

    def int2str(self, label: int) -> str:
        return self.names[label]


class TableFile:
    """A table in a Parquet or Arrow file, of which only some columns are read.

    Args:
        path: the file.
        columns: names of columns, ``a.b`` for the key b of the column a.

    Raises:
        DataError: if the file is not a Parquet or Arrow file.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        suffix = path.suffix.lower()
        if suffix not in (".parquet", ".arrow"):
            inner = path.with_suffix("") if suffix in (".gz", ".bz2", ".xz") else path
            other = _OTHERS.get(inner.suffix.lower())
            hint = f"; use the dataset {other}" if other else ""
            raise DataError(f"expected a .parquet or .arrow file, or a folder{hint}", str(path))
        try:
            import pyarrow
        except ImportError:
            what = "reading Parquet and Arrow files"
            raise MissingExtra(what, library="pyarrow", extra="datasets") from None
        try:
            table = _read_parquet(path, columns) if suffix == ".parquet" else _read_arrow(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"cannot be loaded: {truncate(str(error), 300)}", str(path)) from None
        self.table = table
        self.column_names: list[str] = table.column_names
        self.features = _read_labels(table.schema.metadata or {})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, index: int) -> Any:
        return self.table.slice(index, 1)


def _read_parquet(path: Path, columns: Sequence[str]) -> Any:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        known = file.schema_arrow.names
        used = [name for name in known if _is_used(name, columns)]
        missing = [name for name in columns if not any(_is_used(each, [name]) for each in known)]
        if missing:
            names = ", ".join(map(str, known))
            raise DataError(
                f"no column '{missing[0]}'{suggest(missing[0], known)} (columns: {names})",
                str(path),
            )
        return file.read(columns=used)


def _is_used(name: str, columns: Sequence[str]) -> bool:
    return name in columns or any(column.partition(".")[0] == name for column in columns)


def _read_arrow(path: Path) -> Any:
    import pyarrow

    source = pyarrow.memory_map(str(path))
    try:
        return pyarrow.ipc.open_file(source).read_all()
    except pyarrow.ArrowInvalid:
        source.seek(0)
        return pyarrow.ipc.open_stream(source).read_all()


def _read_labels(metadata: Mapping[bytes, bytes]) -> dict[str, _LabelNames]:
    """Return the names of labels that the library datasets wrote to a file."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        return {
            name: _LabelNames([str(label) for label in feature["names"]])
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
