"""Attention weights in one byte each, with exact row sums.

A weight is a multiple of its row's quantum, which is at most `QUANTUM` and finer in rows whose
largest weight is small, such as those of uniform attention over a long input. Codes:

===== ==============================================================================
0     the weight is zero, as for a masked position
1     less than half a quantum; all such weights of a row have the same decoded value
c     c - 1 quanta
255   stored in 16 bits: weights without a code, and those whose error would be too large
===== ==============================================================================

The decoded values are corrected so that they have the stored sum of the row: first those of code 1,
then the multiples. The error of each weight is at most `MAX_ERROR` times the scale of the layer.

Stored are the codes [R, S] of the R rows of all heads, the exponents of the rows' quanta [R], the
sums [R] as float32 and the weights of code 255 as uint16, in this order and as one zlib stream.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

QUANTUM = 0.0036
MAX_ERROR = 0.002
_MIN_LEVELS = 4
"""The largest weight of a row is at least this number of quanta."""
_MAX_EXPONENT = 24
_SMALL, _EXACT = 1, 255
_ZERO = 1e-6
"""Weights below it have code 0."""
_EXACT_STEPS = 65535
_TOLERANCE = 0.995 * MAX_ERROR  # leaves room for the rounding of sums and exact weights

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Quantised:
    """Encoded weights.

    Args:
        shape: that of the weights; the last dimension is a row.
        scale, offset: a weight is offset + scale x its decoded value, which is in [0, 1].
        error: the largest absolute error of a weight.
        data: a zlib stream.
    """

    shape: tuple[int, ...]
    scale: float
    offset: float
    error: float
    data: bytes


@dataclass(frozen=True)
class _Rows:
    """Codes [R, S], the exponents and sums of rows [R], and the weights of code 255."""

    codes: Codes
    exponents: Codes
    sums: Floats
    exact: NDArray[np.uint16]

    def to_bytes(self) -> bytes:
        parts = (self.codes, self.exponents, self.sums.astype("<f4"), self.exact.astype("<u2"))
        return b"".join(part.tobytes() for part in parts)

    def decode(self) -> Floats:
        """Return the weights [R, S] in [0, 1]."""
        quanta = np.float32(QUANTUM) * np.exp2(-self.exponents.astype(np.float32))
        is_small, is_exact = self.codes == _SMALL, self.codes == _EXACT
        is_multiple = (self.codes > _SMALL) & ~is_exact
        values = np.maximum(self.codes, _SMALL).astype(np.float32) - np.float32(1)
        values *= quanta[:, None]
        values[is_exact] = self.exact / np.float32(_EXACT_STEPS)
        rest = self.sums - values.sum(-1)
        small = np.clip(rest / np.maximum(is_small.sum(-1), 1), 0, quanta / 2)
        rest -= small * is_small.sum(-1)
        shift = rest / np.maximum(is_multiple.sum(-1), 1)
        values += is_small * small[:, None] + is_multiple * shift[:, None]
        np.maximum(values, 0, out=values)
        return values


def encode(weights: Tensor) -> Quantised:
    """Encode finite weights of any range."""
    w = weights.detach().to("cpu", torch.float32).numpy()
    offset = min(float(w.min(initial=0.0)), 0.0)
    scale = max(float(w.max(initial=0.0)) - offset, 1.0)
    w = w.reshape(prod(w.shape[:-1]), w.shape[-1])
    rows, error = _encode_rows((w - np.float32(offset)) / np.float32(scale))
    # Level 6 takes twice the time for 1.5 % fewer bytes; codes have few repeated strings.
    stream = zlib.compressobj(5, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    data = stream.compress(rows.to_bytes()) + stream.flush()
    return Quantised(tuple(weights.shape), scale, offset, scale * error, data)


def _encode_rows(values: Floats) -> tuple[_Rows, float]:
    """Return the encoded rows [R, S] and the largest error."""
    highest = np.maximum(values.max(-1, initial=0.0), 2.0**-20)
    exponents = np.ceil(np.log2(_MIN_LEVELS * QUANTUM / highest)).clip(0, _MAX_EXPONENT)
    quanta = np.float32(QUANTUM) * np.exp2(-exponents)[:, None].astype(np.float32)
    codes = (np.rint(values / quanta) + 1).clip(_SMALL, _EXACT).astype(np.uint8)
    codes[values < _ZERO] = 0
    sums = values.sum(-1, dtype=np.float64).round(5).astype(np.float32)
    while True:
        exact = np.rint(values[codes == _EXACT] * _EXACT_STEPS).astype(np.uint16)
        rows = _Rows(codes, exponents.astype(np.uint8), sums, exact)
        errors = np.abs(rows.decode() - values)
        wrong = (errors > _TOLERANCE) & (codes != _EXACT)
        if not wrong.any():
            return rows, float(errors.max(initial=0.0))
        codes[wrong] = _EXACT


def decode(quantised: Quantised) -> Tensor:
    """Return the weights in float32; raises ValueError if the data do not have their shape."""
    *leading, columns = quantised.shape
    rows = prod(leading)
    content = decompress(quantised.data, rows * (3 * columns + 5))
    exact, odd = divmod(len(content) - rows * (columns + 5), 2)
    if exact < 0 or odd:
        raise ValueError(f"{len(content)} bytes are not weights of shape {list(quantised.shape)}")
    codes, exponents, sums, values = _split(content, (rows * columns, rows, 4 * rows, 2 * exact))
    parts = _Rows(
        np.frombuffer(codes, np.uint8).reshape(rows, columns),
        np.frombuffer(exponents, np.uint8),
        np.frombuffer(sums, "<f4").astype(np.float32),
        np.frombuffer(values, "<u2").astype(np.uint16),
    )
    if np.count_nonzero(parts.codes == _EXACT) != exact:
        raise ValueError(f"{exact} weights of 16 bits do not fit to their codes")
    decoded = np.float32(quantised.offset) + np.float32(quantised.scale) * parts.decode()
    return torch.from_numpy(decoded.reshape(quantised.shape))


def decompress(data: bytes, max_bytes: int) -> bytes:
    """Return the content of a zlib stream; raises ValueError if it is longer or not one."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, max(max_bytes, 0) + 1)
    except zlib.error as error:
        raise ValueError(f"not a zlib stream: {error}") from None
    if len(content) > max_bytes or not stream.eof:
        raise ValueError(f"the stream does not have at most {max_bytes} bytes")
    return content


def _split(content: bytes, sizes: Sequence[int]) -> list[bytes]:
    ends = np.cumsum(sizes)
    return [content[end - size : end] for size, end in zip(sizes, ends, strict=True)]
