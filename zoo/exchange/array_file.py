"""Reading of ``.npz`` files. Their size is checked before they are decompressed."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy
import torch
from torch import Tensor

from zoo.errors import ZooError, one_line, truncate
from zoo.files import os_error_message

MAX_ARRAYS = 10_000
MAX_SMALL_BYTES = 100_000_000
MAX_RATIO = 10
"""Arrays of more bytes than `MAX_SMALL_BYTES` have at most this many times the size of the file."""

_ZIP_ENTRY = b"PK\x01\x02"
_NPY_START = b"\x93NUMPY"


def read_arrays(path: Path) -> tuple[dict[str, Tensor], str]:
    """Return the arrays of a file by name, and the sha256 of the file."""
    try:
        content = path.read_bytes()
        _check_size(content)
        with numpy.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: _to_tensor(path, name, stored[name]) for name in stored.files}
    except ZooError:
        raise
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {os_error_message(error)}") from None
    except Exception as error:  # zipfile, zlib, numpy and torch raise many types
        reason = one_line(truncate(str(error) or type(error).__name__, 200))
        raise ZooError(f"{path} is not a valid .npz file of numpy: {reason}") from None
    return arrays, hashlib.sha256(content).hexdigest()


def _check_size(content: bytes) -> None:
    """Raise ValueError if a file has too many arrays, or arrays that are too large for it."""
    if content.startswith(_NPY_START):
        raise ValueError("it has one array, not several by name")
    # Before the directory of the archive is read, which takes long if it has many entries.
    if content.count(_ZIP_ENTRY) > MAX_ARRAYS:
        raise ValueError(f"it has more than {MAX_ARRAYS:,} arrays")
    with ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for entry in entries):
        raise ValueError("it is compressed with a method that numpy does not write")
    if not all(entry.filename.isprintable() for entry in entries):
        raise ValueError("the name of an array is not printable")
    size = sum(entry.file_size for entry in entries)
    max_bytes = max(MAX_SMALL_BYTES, MAX_RATIO * len(content))
    if size > max_bytes:
        raise ValueError(f"its arrays have {size:,} bytes; at most {max_bytes:,} are allowed")


def _to_tensor(path: Path, name: str, array: numpy.ndarray[Any, Any]) -> Tensor:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ZooError(f"{path}: '{name}' has dtype {array.dtype}; expected numbers or booleans")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
