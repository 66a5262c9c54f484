"""Arrays in the formats of `numpy.save` and `numpy.savez`; declared sizes are checked first."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from zoo.data.bounds import too_large
from zoo.errors import DataError
from zoo.interfaces import Array

MAX_ARRAYS = 200_000
_ZIP_ENTRY = b"PK\x01\x02"
_SUFFIX = ".npy"


class ArrayHeader(NamedTuple):
    """The header of an array file.

    Attributes:
        offset: position of the first value.
    """

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int


def read_array_header(content: bytes) -> ArrayHeader:
    """Return the header of an array; raise ValueError if it is not valid.

    Args:
        content: the content of the file, or its start.
    """
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran_order, dtype = read(stream)
    except Exception as error:  # of the header: MemoryError, RecursionError, TokenError and others
        raise ValueError(str(error) or "its header is not valid") from None
    if any(size < 0 for size in shape):
        raise ValueError(f"its shape is {list(shape)}")
    if dtype.hasobject:
        raise ValueError("the array has Python objects; expected numbers")
    if shape and shape[0] and not math.prod(shape[1:]) * dtype.itemsize:
        raise ValueError(f"the rows of the array {list(shape)} have no values")
    return ArrayHeader(shape, fortran_order, dtype, stream.tell())


def read_arrays(
    content: bytes, max_bytes: int, *, max_arrays: int = MAX_ARRAYS
) -> dict[str, Array]:
    """Return the arrays of a .npz file by name.

    Raises:
        DataError: if the arrays have more than `max_bytes`.
        ValueError: if the file is not valid.
    """
    if content.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError("it has one array, not several by name")
    # Before the directory of the archive is read, which takes long if it has many entries.
    if content.count(_ZIP_ENTRY) > max_arrays:
        raise ValueError(f"it has more than {max_arrays:,} arrays")
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            entries = _list_entries(archive)
            size = sum(entry.file_size for entry in entries.values())
            if size > max_bytes:
                raise too_large(f"its arrays have {size:,} bytes; the limit is {max_bytes:,}")
            return {name: _read_array(archive, entry) for name, entry in entries.items()}
    except (ValueError, DataError):
        raise
    except Exception as error:  # zipfile and zlib raise many types
        raise ValueError(str(error) or type(error).__name__) from None


def _list_entries(archive: ZipFile) -> Mapping[str, ZipInfo]:
    entries = archive.infolist()
    if any(entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for entry in entries):
        raise ValueError("it is compressed with a method that numpy does not write")
    if not all(entry.filename.isprintable() for entry in entries):
        raise ValueError("the name of an array is not printable")
    return {entry.filename.removesuffix(_SUFFIX): entry for entry in entries}


def _read_array(archive: ZipFile, entry: ZipInfo) -> Array:
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size)  # without a size, more than it declares is read
    header = read_array_header(content)
    expected = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if len(content) != expected:
        raise ValueError(
            f"'{entry.filename}' declares an array of shape {list(header.shape)}, {expected:,} "
            f"bytes, but has {len(content):,} bytes"
        )
    flat = np.frombuffer(bytearray(content), header.dtype, offset=header.offset)
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")
