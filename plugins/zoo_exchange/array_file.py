"""Reading of ``.npz`` files. Their size is checked before they are decompressed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from zoo.data import array_content
from zoo.data.bounds import max_content
from zoo.errors import DataError, ZooError, one_line, truncate
from zoo.files import os_error_message

MAX_ARRAYS = 10_000
MAX_SMALL_BYTES = 100_000_000
MAX_RATIO = 10
"""Arrays of more bytes than `MAX_SMALL_BYTES` have at most this many times the size of the file."""


def read_arrays(path: Path) -> tuple[dict[str, Tensor], str]:
    """Return the arrays of a file by name, and the sha256 of the file."""
    try:
        content = path.read_bytes()
        bound = max_content(len(content), MAX_SMALL_BYTES, MAX_RATIO)
        stored = array_content.read_arrays(content, bound, max_arrays=MAX_ARRAYS)
        arrays = {name: _to_tensor(path, name, array) for name, array in stored.items()}
    except DataError as error:
        raise ZooError(f"{path}: {error}") from None
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {os_error_message(error)}") from None
    except ValueError as error:
        reason = one_line(truncate(str(error), 200))
        raise ZooError(f"{path} is not a valid .npz file of numpy: {reason}") from None
    return arrays, hashlib.sha256(content).hexdigest()


def _to_tensor(path: Path, name: str, array: numpy.ndarray[Any, Any]) -> Tensor:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ZooError(f"{path}: '{name}' has dtype {array.dtype}; expected numbers or booleans")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
