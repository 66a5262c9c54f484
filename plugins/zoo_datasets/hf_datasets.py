"""Dataset 'hf-datasets'."""

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from zoo import DataError
from zoo.plugin import (
    Array,
    Audio,
    Dataset,
    Example,
    Examples,
    Field,
    MissingExtra,
    expand_path,
    read_audio,
    read_image,
    truncate,
)
from zoo_datasets.columns import (
    READERS,
    Columns,
    check_columns,
    column_names,
    declare_fields,
    decodes_files,
    make_example,
    missing_column,
)
from zoo_datasets.table_file import TableFile

T = TypeVar("T")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


class HfDatasets(Dataset):
    """A dataset of the Hugging Face library ``datasets`` (extra ``datasets``).

    The dataset is a Parquet or Arrow file (``.parquet``, ``.arrow``), a folder that
    ``save_to_disk`` wrote, or a repository of the Hub, which is downloaded to the cache of the
    library. Code of a repository is never run. The library decodes nothing: images and audio are
    read as those of other datasets are. Files need pyarrow only, which is in the extra, too.

    Args:
        path: an existing file or folder, or ``org/name`` on the Hub. Names without an organisation
            are rejected: some are readers of the library, which read files of the current folder.
        fields: for each field a ``column`` (``a.b`` for the key b of the column a) and its
            ``content``: text (default), texts, label, labels, number, numbers, image or audio.
            ``columns`` instead of ``column`` names the columns of a list of texts. Labels of the
            type ``ClassLabel`` are replaced by their names.
        split: name of the split, such as ``train``; of a file, or a folder with one split, it is
            not used.
        config: name of the configuration on the Hub.

    Fields:
        those of ``fields``.
    """

    name: ClassVar[str] = "hf-datasets"
    paper: ClassVar[str] = "Lhoest et al. 2021, Datasets: A Community Library, arXiv:2109.02846"
    test_params: ClassVar[Mapping[str, Any]] = {"fields": {"target": {"column": "text"}}}

    def __init__(
        self, *, path: str, fields: Columns, split: str = "train", config: str | None = None
    ) -> None:
        check_columns(fields)
        self.path = path
        self.columns = fields
        self.split = split
        self.config = config

    def fields(self) -> Mapping[str, Field]:
        return declare_fields(self.columns)

    def open(self, *, evaluation: bool = False) -> Examples:
        path = expand_path(self.path)
        if path.is_file():
            return _Rows(TableFile(path, column_names(self.columns)), self.columns, self.path)
        return _Rows(self._load(), self.columns, f"{self.path}[{self.split}]")

    def _load(self) -> Any:
        folder = expand_path(self.path)
        if not folder.is_dir() and not _REPOSITORY.fullmatch(self.path):
            raise DataError(
                "it is neither an existing file or folder nor org/name on the Hub", self.path
            )
        datasets = _import_datasets()
        try:
            if not folder.is_dir():
                return datasets.load_dataset(self.path, self.config, split=self.split)
            loaded = datasets.load_from_disk(str(folder))
        except Exception as error:  # network, missing files, unknown splits, damaged files
            raise DataError(f"cannot be loaded: {truncate(str(error), 300)}", self.path) from None
        if isinstance(loaded, datasets.DatasetDict):
            if self.split not in loaded:
                splits = ", ".join(map(str, loaded))
                raise DataError(f"no split '{self.split}'; the dataset has {splits}", self.path)
            loaded = loaded[self.split]
        return loaded

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        datasets = _import_datasets()
        features = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
        )
        rows = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
        with contextlib.redirect_stderr(io.StringIO()):  # the progress bar
            rows.save_to_disk(str(folder / "a"))
        fields = {"source": {"column": "text"}, "target": {"column": "label", "content": "label"}}
        return {"path": str(folder / "a"), "fields": fields}


class _Rows(Examples):
    def __init__(self, rows: Any, columns: Columns, name: str) -> None:
        self.columns = columns
        self.name = name
        for column in column_names(columns):
            top = column.partition(".")[0]
            if column not in rows.column_names and top not in rows.column_names:
                raise missing_column(column, rows.column_names, name)
        self.features = rows.features
        # Rows of Arrow tables are not decoded, whatever the types of their columns.
        self.rows = rows if isinstance(rows, TableFile) else rows.with_format("arrow")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        (row,) = self.rows[index].to_pylist()
        for column in column_names(self.columns):
            feature = self.features.get(column)
            if hasattr(feature, "int2str"):
                row[column] = feature.int2str(row[column])
        origin = self.origin(index)
        return make_example(self.columns, row, origin, Path(), _READERS)

    def decodes_files(self) -> bool:
        return decodes_files(self.columns)

    def origin(self, index: int) -> str:
        return f"{self.name}[{index}]"


def _read_image(value: Any, folder: Path) -> Array:
    return _read_file(read_image, value)


def _read_audio(value: Any, folder: Path) -> Audio:
    return _read_file(read_audio, value)


def _read_file(read: Callable[[str | bytes], T], value: Any) -> T:
    content, path = _stored_file(value)
    if not content:
        return read(path)
    try:
        return read(content)
    except DataError as error:  # the content has no name; the row is named
        raise DataError(error.message) from None


def _stored_file(value: Any) -> tuple[bytes, str]:
    """Return the content and the path of an image or audio file; one of them may be empty."""
    if not isinstance(value, Mapping):
        raise ValueError
    content, path = value.get("bytes") or b"", value.get("path") or ""
    if not isinstance(content, bytes) or not isinstance(path, str) or not (content or path):
        raise ValueError
    return content, path


_READERS = {**READERS, "image": _read_image, "audio": _read_audio}


def _import_datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtra("dataset 'hf-datasets'", library="datasets", extra="datasets") from None
    return datasets
