"""Collation: arrays of examples to the padded tensors of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.errors import DataError
from zoo.interfaces import Array, BatchSchema, TensorSchema
from zoo.interfaces.batch_schema import Sizes

Arrays = Mapping[str, Array]
"""The arrays of one example by key of the batch, without the batch dimension."""

MASK = "mask"
"""The key of a mask that is made if the data does not have it: True where there is no padding."""

_DTYPES: dict[str, type[np.generic]] = {"integer": np.int64, "float": np.float32, "bool": np.bool_}
_KINDS: dict[str, type[np.generic]] = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float32}


def prepare_example(schema: BatchSchema, arrays: Arrays) -> dict[str, Array]:
    """Return the arrays of the keys of the batch, with prefix, suffix and the dtype of the schema.

    Raises:
        DataError: if a key is missing, or an array does not fit its schema; the caller adds the
            origin.
    """
    prepared: dict[str, Array] = {}
    for key, field in schema.items():
        if key in arrays:
            prepared[key] = add_affixes(convert(key, arrays[key], field), field)
        elif not field.optional:
            found = ", ".join(f"'{name}'" for name in arrays) or "nothing"
            raise DataError(f"'{key}' {field.format()} is missing; found {found}")
    sizes: Sizes = {}
    for key, array in prepared.items():
        _check_shape(key, array, schema[key], sizes)
    for key, array in prepared.items():
        below = schema[key].below
        limit = sizes[below][0] if isinstance(below, str) and below in sizes else below
        if isinstance(limit, int) and array.size:
            check_range(key, array, limit, schema[key].minimum)
    return prepared


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


def add_affixes(array: Array, field: TensorSchema) -> Array:
    """Return token IDs with the prefix and suffix of a schema."""
    if field.prefix or field.suffix:
        return np.concatenate([field.prefix, array, field.suffix]).astype(array.dtype)
    return array


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
        known = {dim: place for dim, place in sizes.items() if place[1] != key}
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


def collate(schema: BatchSchema, examples: Sequence[Arrays]) -> dict[str, Tensor]:
    """Return the batch of examples that `prepare_example` returned: padded and stacked."""
    batch = {
        key: torch.from_numpy(pad_and_stack([example[key] for example in examples], field))
        for key, field in schema.items()
        if all(key in example for example in examples)
    }
    if makes_mask(schema) and MASK not in batch:
        lengths = _dim_sizes(schema, examples)
        if lengths is not None:
            batch[MASK] = torch.from_numpy(length_mask(lengths, int(lengths.max(initial=0))))
    return batch


def makes_mask(schema: BatchSchema) -> bool:
    """Return whether the batch has an optional mask of the positions of another key."""
    field = schema.get(MASK)
    return field is not None and field.optional and field.dims is not None and len(field.dims) == 2


def length_mask(lengths: Array, longest: int) -> Array:
    """Return a mask [B, longest], True for the first positions, as many as the lengths [B]."""
    return np.arange(longest) < lengths[:, None]


def _dim_sizes(schema: BatchSchema, examples: Sequence[Arrays]) -> Array | None:
    """Return the size of each example in the dimension of the mask, or None if no key has it."""
    dim = (schema[MASK].dims or ())[1]
    for key, field in schema.items():
        if key != MASK and field.dims is not None and dim in field.dims[1:] and key in examples[0]:
            axis = field.dims.index(dim) - 1
            return np.array([example[key].shape[axis] for example in examples])
    return None


def pad_and_stack(arrays: Sequence[Array], field: TensorSchema) -> Array:
    """Return arrays as one, padded to the largest."""
    shape = np.max([array.shape for array in arrays], axis=0).astype(int)
    if all(array.shape == tuple(shape) for array in arrays):
        return np.stack(arrays)
    out = np.full((len(arrays), *shape), field.pad, dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        places: tuple[int | slice, ...] = (row, *(slice(size) for size in array.shape))
        out[places] = array
    return out
