"""Random access to the rows of array files."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from zoo import DataError
from zoo.plugin import Array, FileBytes

_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class ArrayRows:
    """The rows of an array in a file, which may be larger than memory.

    Args:
        file: the file.
        offset: position of the first value.
        shape: shape of the array.
        dtype: type of the values.
    """

    def __init__(self, file: FileBytes, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path = file.path
        self.shape = shape
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._file = file
        self._offset = offset
        self._row_bytes = math.prod(shape[1:]) * self.dtype.itemsize
        if shape[0] and not self._row_bytes:
            raise DataError(f"the rows of the array {list(shape)} have no values", str(self.path))
        expected = offset + shape[0] * self._row_bytes
        if len(file) != expected:
            raise DataError(
                f"the header declares an array of shape {list(shape)}, {expected:,} bytes, but the "
                f"file has {len(file):,} bytes",
                str(self.path),
            )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> Array:
        row: Array = self.read(np.array([index]))[0]
        return row

    def read(self, indices: Array) -> Array:
        """Return several rows, along the first dimension."""
        wrong = indices[(indices < 0) | (indices >= len(self))]
        if len(wrong):
            raise IndexError(f"row {wrong[0]} of {len(self)}")
        content = self._file.read_rows(self._offset, self._row_bytes, indices.tolist())
        rows = np.frombuffer(content, self.dtype).reshape(len(indices), *self.shape[1:])
        return rows.astype(self.dtype.newbyteorder("="))


def open_idx(path: str) -> ArrayRows:
    """Open an IDX file, the format of MNIST."""
    file = FileBytes(path)
    start = file.read(0, 4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _IDX_TYPES or not start[3]:
        raise DataError("it is not an IDX file", str(file.path))
    offset = 4 + 4 * start[3]
    if len(file) < offset:
        raise DataError("the header of the IDX file is incomplete", str(file.path))
    sizes = np.frombuffer(file.read(4, offset), ">u4")
    return ArrayRows(file, offset, tuple(int(size) for size in sizes), _IDX_TYPES[start[2]])


def open_npy(path: str) -> ArrayRows:
    """Open an array of `numpy.save`; arrays of Python objects are not read."""
    file = FileBytes(path)
    header = file.array_header()
    if not header.shape or (header.fortran_order and len(header.shape) > 1):
        found = "Fortran order" if header.shape else "one value"
        raise DataError(f"the array has {found}; expected rows in C order", str(file.path))
    return ArrayRows(file, header.offset, header.shape, header.dtype)


def read_npz(path: str) -> tuple[str, Mapping[str, Array]]:
    """Return the path and the arrays of a file of `numpy.savez`."""
    file = FileBytes(path)
    return str(file.path), file.arrays()


def open_arrays(path: str) -> tuple[str, Mapping[str, Array | ArrayRows]]:
    """Return the path and the arrays of a .npz file, or of a .npy file under the name ``array``."""
    file = FileBytes(path)
    if FileBytes.suffix_of(file.path) == ".npz":
        return read_npz(path)
    return str(file.path), {"array": open_npy(path)}
