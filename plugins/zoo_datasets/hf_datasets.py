"""Dataset 'hf-datasets'."""

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

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
    truncate,
)
from zoo_datasets.columns import (
    READERS,
    Columns,
    declare_fields,
    make_example,
    missing_column,
)


class HfDatasets(Dataset):
    """A dataset of the Hugging Face library ``datasets`` (extra ``datasets``).

    The dataset is a folder that ``save_to_disk`` wrote, or a name on the Hub, which is downloaded
    to the cache of the library. Code of a repository is never run.

    Args:
        path: folder, or name on the Hub.
        fields: for each field a ``column`` (``a.b`` for the key b of the column a) and its
            ``content``: text (default), texts, label, labels, image or audio. Labels of the type
            ``ClassLabel`` are replaced by their names.
        split: name of the split, such as ``train``; of a folder with one split it is not used.
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
        self.path = path
        self.columns = fields
        self.split = split
        self.config = config

    def fields(self) -> Mapping[str, Field]:
        return declare_fields(self.columns)

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Rows(self._load(), self.columns, f"{self.path}[{self.split}]")

    def _load(self) -> Any:
        datasets = _import_datasets()
        folder = expand_path(self.path)
        if not folder.is_dir() and (folder.is_absolute() or self.path.startswith((".", "~", "$"))):
            raise DataError("no such folder", str(folder))
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
        for column in columns.values():
            top = column["column"].partition(".")[0]
            if column["column"] not in rows.column_names and top not in rows.column_names:
                raise missing_column(column["column"], rows.column_names, name)
            if column.get("content") == "audio":
                rows = rows.cast_column(top, _import_datasets().Audio(decode=False))
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        row = dict(self.rows[index])
        for column in self.columns.values():
            feature = self.rows.features.get(column["column"])
            if hasattr(feature, "int2str"):
                row[column["column"]] = feature.int2str(row[column["column"]])
        return make_example(self.columns, row, self.origin(index), Path(), _READERS)

    def origin(self, index: int) -> str:
        return f"{self.name}[{index}]"


def _read_image(value: Any, folder: Path) -> Array:
    if not hasattr(value, "convert"):
        raise ValueError
    pixels: Array = np.asarray(value.convert("L" if value.mode in ("1", "L", "LA") else "RGB"))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _read_audio(value: Any, folder: Path) -> Audio:
    try:
        import soundfile
    except (ImportError, OSError):
        raise MissingExtra("reading audio", library="soundfile", extra="audio") from None
    if not isinstance(value, Mapping) or not (value.get("bytes") or value.get("path")):
        raise ValueError
    content = value.get("bytes")
    try:
        samples, rate = soundfile.read(
            io.BytesIO(content) if content else value["path"], dtype="float32", always_2d=True
        )
    except (OSError, RuntimeError):
        raise ValueError from None
    return Audio(samples.mean(axis=1, dtype=np.float64).astype(np.float32), int(rate))


_READERS = {**READERS, "image": _read_image, "audio": _read_audio}


def _import_datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtra("dataset 'hf-datasets'", library="datasets", extra="datasets") from None
    return datasets
