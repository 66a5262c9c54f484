"""Dataset 'arrays'."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NotRequired

import numpy as np
from pydantic import ConfigDict
from typing_extensions import TypedDict

from zoo import DataError
from zoo.plugin import Array, Dataset, Example, Examples, Field, TensorSchema, suggest
from zoo_datasets.array_rows import ArrayRows, open_arrays

_KINDS = {"float": "fiu", "integer": "iu", "bool": "b"}
_TYPES = {"float": np.float32, "integer": np.int64, "bool": np.bool_}


class ArrayField(TypedDict):
    """An array of a file: its name, the dimensions of a row, and the type of its values."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    array: NotRequired[str]
    dims: list[str | int]
    dtype: NotRequired[Literal["float", "integer", "bool"]]


class Arrays(Dataset):
    """Numeric arrays of a ``.npz`` or ``.npy`` file; an example is a row of each array.

    A ``.npy`` file may be larger than memory. The file may be compressed (``.gz``, ``.xz``,
    ``.bz2``). A row with NaN or infinite values raises DataError.

    Args:
        file: the file.
        fields: for each field its ``array`` in the file (default: the name of the field; a ``.npy``
            file has one array), the ``dims`` of a row (a size, or a name such as S for a size that
            the file decides), and its ``dtype``: float (default), integer or bool.

    Fields:
        those of ``fields``: array, float32, int64 or bool.
    """

    name: ClassVar[str] = "arrays"
    test_params: ClassVar[Mapping[str, Any]] = {"fields": {"source": {"dims": ["S"]}}}

    def __init__(self, *, file: str, fields: dict[str, ArrayField]) -> None:
        self.file = file
        self.arrays = fields

    def fields(self) -> Mapping[str, Field]:
        return {
            name: Field("array", TensorSchema(("B", *array["dims"]), array.get("dtype", "float")))
            for name, array in self.arrays.items()
        }

    def open(self, *, evaluation: bool = False) -> Examples:
        path, arrays = open_arrays(self.file)
        found = {}
        for name, field in self.arrays.items():
            key = "array" if list(arrays) == ["array"] else field.get("array", name)
            if key not in arrays:
                raise DataError(f"no array '{key}'{suggest(key, arrays)}", path)
            _check(arrays[key], key, field, path)
            found[name] = arrays[key]
        counts = {name: len(array) for name, array in found.items()}
        if len(set(counts.values())) != 1 or not max(counts.values()):
            listed = ", ".join(f"'{name}' {count:,}" for name, count in counts.items())
            raise DataError(f"every array must have the same number of rows: {listed}", path)
        types = {name: _TYPES[field.get("dtype", "float")] for name, field in self.arrays.items()}
        return _Rows(path, found, types)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        features = np.arange(12, dtype=np.float64).reshape(2, 3, 2)
        np.savez(folder / "a.npz", x=features, y=np.array([1, 0], np.int32))
        fields = {
            "source": {"array": "x", "dims": ["S", 2]},
            "target": {"array": "y", "dims": [], "dtype": "integer"},
        }
        return {"file": str(folder / "a.npz"), "fields": fields}


def _check(array: Array | ArrayRows, key: str, field: ArrayField, path: str) -> None:
    dims, dtype = field["dims"], field.get("dtype", "float")
    sizes = array.shape[1:]
    equal = len(sizes) == len(dims) and len(array.shape) > 0
    equal = equal and all(isinstance(d, str) or d == s for d, s in zip(dims, sizes, strict=True))
    if not equal or array.dtype.kind not in _KINDS[dtype]:
        expected = ", ".join(map(str, ("N", *dims)))
        raise DataError(
            f"array '{key}' is {array.dtype} {list(array.shape)}, but expected {dtype} "
            f"[{expected}]",
            path,
        )


class _Rows(Examples):
    def __init__(
        self, path: str, arrays: Mapping[str, Array | ArrayRows], types: Mapping[str, Any]
    ) -> None:
        self.path = path
        self.arrays = arrays
        self.types = types

    def __len__(self) -> int:
        return min(len(array) for array in self.arrays.values())

    def __getitem__(self, index: int) -> Example:
        columns = self.read_many(np.array([index]))
        return {name: np.asarray(rows[0]) for name, rows in columns.items()}

    def read_many(self, indices: Array) -> Mapping[str, Array]:
        found = {}
        for name, array in self.arrays.items():
            rows = array.read(indices) if isinstance(array, ArrayRows) else array[indices]
            if rows.dtype.kind == "f" and not np.isfinite(rows).all():
                place, *where = np.argwhere(~np.isfinite(rows))[0].tolist()
                value = rows[(place, *where)]
                origin = self.origin(int(indices[place]))
                raise DataError(f"'{name}' contains {value} at {where}", origin)
            found[name] = rows.astype(self.types[name])
        return found

    def origin(self, index: int) -> str:
        return f"{self.path}[{index}]"
