"""Collation of whole columns: the arrays of one key of all examples of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from zoo.data.collation import batch_dtype, check_range, convert, stack_arrays
from zoo.data.padding import MASK, length_mask, mask_dim
from zoo.errors import DataError
from zoo.interfaces import Array, Arrays, BatchSchema, TensorSchema

_Sizes = dict[str | int, Array]
"""The size of each example in each dimension."""


def collate_columns(schema: BatchSchema, columns: Mapping[str, Arrays]) -> dict[str, Tensor]:
    """Return the batch of the arrays of some examples: checked, padded and stacked, as
    `prepare_example` and `collate` of each example.

    Raises:
        DataError: if an example does not fit the schema.
    """
    batch: dict[str, Array] = {}
    sizes: _Sizes = {}
    for key, field in schema.items():
        if key in columns:
            batch[key] = _collate_column(key, columns[key], field, sizes)
        elif not field.optional:
            raise DataError(f"'{key}' {field.format()} is missing")
    dim = mask_dim(schema)
    if dim is not None and MASK not in batch:
        lengths = sizes.get(dim)
        if lengths is not None:
            batch[MASK] = length_mask(lengths, int(lengths.max(initial=0)))
    return {key: torch.from_numpy(array) for key, array in batch.items()}


def _collate_column(key: str, column: Arrays, field: TensorSchema, sizes: _Sizes) -> Array:
    if not isinstance(column, np.ndarray):
        return _pad_column(key, column, field, sizes)
    array = np.ascontiguousarray(convert(key, column, field))
    _check_sizes(key, np.array([array.shape[1:]]).repeat(len(array), axis=0), field, sizes)
    if isinstance(field.below, int) and array.size:
        check_range(key, array, field.below, field.minimum)
    return array


def _pad_column(key: str, column: Arrays, field: TensorSchema, sizes: _Sizes) -> Array:
    (found, *others) = {array.dtype for array in column}
    if others or len({array.ndim for array in column}) != 1:
        raise DataError(f"'{key}' has arrays of several dtypes or numbers of dimensions")
    dtype = batch_dtype(key, found, field)
    arrays = [array.astype(dtype, copy=False) for array in column]
    _check_sizes(key, np.array([array.shape for array in arrays]), field, sizes)
    if isinstance(field.below, int):
        flat = np.concatenate([array.ravel() for array in arrays])
        if flat.size:
            check_range(key, flat, field.below, field.minimum)
    return convert(key, stack_arrays(key, arrays, field), field)


def _check_sizes(key: str, shapes: Array, field: TensorSchema, sizes: _Sizes) -> None:
    """Raise DataError if a shape of the examples [B, dimensions] does not fit the schema."""
    if field.dims is None:
        return
    dims = field.dims[1:]
    if field.channels is not None and shapes.shape[1] == len(dims) + 1:
        dims = (*dims, len(field.channels))
    if shapes.shape[1] != len(dims):
        raise DataError(f"'{key}' has {shapes.shape[1]} dimensions, but expected {len(dims)}")
    for found, dim in zip(shapes.T, dims, strict=True):
        expected = dim if isinstance(dim, int) else sizes.get(dim, found)
        if not np.all(found == expected):
            raise DataError(f"'{key}' does not have the size of dimension {dim}")
        sizes[dim] = found
