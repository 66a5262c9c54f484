"""Collation: arrays of examples to the padded tensors of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.padding import MASK, length_mask, mask_dim, pad_arrays
from zoo.errors import DataError
from zoo.interfaces import Array, Arrays, BatchSchema, TensorSchema
from zoo.interfaces.batch_schema import Sizes

ExampleArrays = Mapping[str, Array]
"""The arrays of one example by key of the batch, without the batch dimension."""

_DTYPES: dict[str, type[np.generic]] = {"integer": np.int64, "float": np.float32, "bool": np.bool_}
_KINDS: dict[str, type[np.generic]] = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float32}


def prepare_example(schema: BatchSchema, arrays: ExampleArrays) -> dict[str, Array]:
    """Return the arrays of the keys of the batch, checked and in the dtype of the schema.

    Raises:
        DataError: if a key is missing, or an array does not fit its schema; the caller adds the
            origin.
    """
    prepared: dict[str, Array] = {}
    for key, field in schema.items():
        if key in arrays:
            prepared[key] = convert(key, arrays[key], field)
        elif not field.optional:
            found = ", ".join(f"'{name}'" for name in arrays) or "nothing"
            raise DataError(f"'{key}' {field.format()} is missing; found {found}")
    sizes: Sizes = {}
    for key, array in prepared.items():
        _check_shape(key, array, schema[key], sizes)
    for key, array in prepared.items():
        below = schema[key].below
        if isinstance(below, str) and below in sizes:
            below = sizes[below][0]
        if isinstance(below, int) and array.size:
            check_range(key, array, below, schema[key].minimum)
    return prepared


def require_values(key: str, array: Array, field: TensorSchema | None) -> None:
    """Raise DataError if the encoded value of a key is too short, before special tokens are added.

    Args:
        field: the schema of the key; None if it is not known.
    """
    if not array.size and not (field is not None and field.empty):
        is_text = field is not None and field.dtype == "integer"
        raise DataError(f"'{key}' is empty: it has no {'tokens' if is_text else 'values'}")
    if field is not None and array.ndim and len(array) < field.min_length:
        raise DataError(
            f"'{key}' has {len(array)} values, but the model takes {field.min_length} or more"
        )


def convert(key: str, array: Array, field: TensorSchema) -> Array:
    """Return an array in the dtype of a schema, or raise DataError."""
    array = np.asarray(array)
    dtype = batch_dtype(key, array.dtype, field)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        count = int(array.size - np.isfinite(array).sum())
        raise DataError(f"'{key}' contains {count} values that are NaN or infinite")
    return array.astype(dtype, copy=False)


def batch_dtype(key: str, dtype: np.dtype[Any], field: TensorSchema) -> type[np.generic]:
    """Return the dtype in a batch of the values of a key, or raise DataError."""
    found = _DTYPES.get(field.dtype) or _KINDS.get(dtype.kind)
    kinds = {"integer": "iu", "float": "fiu", "bool": "b"}.get(field.dtype, "biuf")
    if found is None or dtype.kind not in kinds:
        raise DataError(f"'{key}' has dtype {dtype}, but expected {field.dtype} values")
    return found


def _check_shape(key: str, array: Array, field: TensorSchema, sizes: Sizes) -> None:
    if field.dims is None:
        return
    dims = field.dims[1:]
    if field.channels is not None and array.ndim == len(dims) + 1:
        dims = (*dims, len(field.channels))
    valid = array.ndim == len(dims)
    for size, dim in zip(array.shape, dims, strict=False):
        expected = dim if isinstance(dim, int) else sizes.setdefault(dim, (size, key))[0]
        valid = valid and size == expected
    if not valid:
        known = {dim: found for dim, found in sizes.items() if found[1] != key}
        expected_shape = field._replace(dims=dims).format(known)
        raise DataError(f"'{key}' has shape {list(array.shape)}, but expected {expected_shape}")


def check_range(key: str, array: Array, below: int, minimum: int | None) -> None:
    """Raise DataError if an ID of an array is out of range."""
    low, high = int(array.min()), int(array.max())
    if high >= below or (minimum is not None and low < minimum):
        wrong = high if high >= below else low
        first = minimum or 0
        message = f"'{key}' contains {wrong}, but expected IDs from {first} to {below - 1}"
        raise DataError(message)


def collate(schema: BatchSchema, examples: Sequence[ExampleArrays]) -> dict[str, Tensor]:
    """Return the batch of examples that `prepare_example` returned: padded and stacked."""
    batch = {
        key: torch.from_numpy(stack_arrays(key, [example[key] for example in examples], field))
        for key, field in schema.items()
        if all(key in example for example in examples)
    }
    dim = mask_dim(schema)
    if dim is not None and MASK not in batch:
        lengths = _dim_sizes(dim, schema, examples)
        if lengths is not None:
            batch[MASK] = torch.from_numpy(length_mask(lengths, int(lengths.max(initial=0))))
    return batch


def stack_arrays(key: str, arrays: Sequence[Array], field: TensorSchema) -> Array:
    """Return the arrays of a key as one, padded; raise DataError if they must have one size."""
    shapes = list(dict.fromkeys(array.shape for array in arrays))
    if field.same_size and len(shapes) > 1:
        first, second = map(list, shapes[:2])
        raise DataError(
            f"'{key}' has the shapes {first} and {second} in one batch, but the model takes "
            "examples of one size, since it does not mask padding; resize them, such as with "
            "'size' of the preprocessor 'image', or use them one by one"
        )
    return pad_arrays(arrays, field.pad)


def _dim_sizes(
    dim: str | int, schema: BatchSchema, examples: Sequence[ExampleArrays]
) -> Array | None:
    """Return the size of each example in a dimension, or None if no key has it."""
    for key, field in schema.items():
        if key != MASK and field.dims is not None and dim in field.dims[1:] and key in examples[0]:
            axis = field.dims.index(dim) - 1
            return np.array([example[key].shape[axis] for example in examples])
    return None


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
