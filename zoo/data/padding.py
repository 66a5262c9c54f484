"""Padding: arrays of different sizes as one array, and the mask of what is not padding.

No other module of the data path pads. The value of the padding is `TensorSchema.pad`, or that of
the embedding, and it is always at the end of a dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from zoo.interfaces import Array, BatchSchema

MASK = "mask"
"""The key of a mask that is made if the data does not have it: True where there is no padding."""

Padded = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Padded IDs [B, L] or [B, N, W], and the numbers of IDs or texts of each row [B]."""


def pad_arrays(arrays: Sequence[Array], pad: float) -> Array:
    """Return arrays as one with a new first dimension, padded to the largest size."""
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    shape = np.max([array.shape for array in arrays], axis=0).astype(int)
    padded = np.full((len(arrays), *shape), pad, dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        region: tuple[int | slice, ...] = (row, *(slice(size) for size in array.shape))
        padded[region] = array
    return padded


class Tokens(Protocol):
    """A flat sequence of IDs: an array, or texts that are read as one."""

    def __getitem__(self, positions: NDArray[np.int64], /) -> NDArray[Any]: ...


def pad_ranges(
    tokens: Tokens, starts: NDArray[np.int64], ends: NDArray[np.int64], pad: float
) -> Padded:
    """Return the IDs from starts[i] to ends[i] of a flat sequence, padded to the longest range."""
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    padded = np.full((len(starts), longest), pad, dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    positions = np.arange(int(lengths.sum())) + np.repeat(starts - first, lengths)
    padded[length_mask(lengths, longest)] = tokens[positions]
    return padded, lengths


def pad_text_ranges(
    tokens: NDArray[Any],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    widths: NDArray[np.int64],
    pad: float,
) -> Padded:
    """Return ranges of several texts, of widths[i] IDs each, padded to most texts and IDs."""
    sizes = ends - starts
    counts = sizes // widths
    shape = (len(starts), int(counts.max()), int(widths.max()))
    padded = np.full(shape, pad, dtype=np.int64)
    position = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    text, column = np.divmod(position, np.repeat(widths, sizes))
    row = np.repeat(np.arange(len(starts)), sizes)
    padded[row, text, column] = tokens[position + np.repeat(starts, sizes)]
    return padded, counts


def pad_tensor(tensor: Tensor, sizes: Sequence[int], pad: float) -> Tensor:
    """Return a tensor padded to larger sizes of its first dimensions."""
    missing = [size - found for size, found in zip(sizes, tensor.shape, strict=False)]
    if not any(missing):
        return tensor
    missing += [0] * (tensor.dim() - len(missing))
    amounts = [amount for count in reversed(missing) for amount in (0, count)]
    return F.pad(tensor, amounts, value=pad)


def length_mask(lengths: Array, longest: int) -> Array:
    """Return a mask [B, longest], True for the first positions, as many as the lengths [B]."""
    return np.arange(longest) < lengths[:, None]


def mask_dim(schema: BatchSchema) -> str | int | None:
    """Return the dimension whose positions a batch masks if the data has no mask; None if the
    batch has no such mask."""
    field = schema.get(MASK)
    if field is None or not field.optional or field.dims is None or len(field.dims) != 2:
        return None
    return field.dims[1]
