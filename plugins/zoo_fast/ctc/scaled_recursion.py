"""The recursion of CTC in numpy, with an exponent for each state.

A probability is m * 2^n with a float64 m and a whole number n, which is updated every few frames.
Between two updates, a frame needs a few operations on all items and no logarithms.

Notation: N items, L states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MIN_SPAN, MAX_SPAN = 28, 120
_RANGE = 900  # bits of float64 that m may use on either side of 1
_UNREACHED = -(1 << 40)


def interval(span: int) -> int:
    """Return the number of frames between two updates of the exponents."""
    return _RANGE // (2 * span)  # a frame passes two states


def run(
    e: FloatArray, start: FloatArray, can_skip: NDArray[np.bool_], span: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the probabilities before and after the emissions of each frame, and their exponents.

    The exponent of a state is at least that of the state before it minus ``span``, so that the
    states that are reached before the next update do not overflow.

    Args:
        e: probability of each state's symbol [C, I, N, L], 0 or at least 2^-span, for C chunks of
            I = interval(span) frames.
        start: probabilities before the first frame [N, L].
        can_skip: whether a state can be reached from two states before [N, L].
        span: from MIN_SPAN to MAX_SPAN.

    Shapes:
        probabilities [C, I, N, L]; exponents [C, N, L].
    """
    C, frames, N, L = e.shape
    size, shape = N * L, e.shape
    before, after = np.empty((C * frames + 1, size)), np.empty((C * frames, size))
    emissions, exponents = e.reshape(-1, size), np.zeros((C, N, L), dtype=np.int64)
    before[0] = start.ravel()
    n = exponents[0]
    # Factors from one and two states before; 0 for the first states of an item.
    one, two = np.zeros((N, L)), np.zeros((N, L))
    flat_one, flat_two = one.ravel()[1:], two.ravel()[2:]
    from_one, from_two = np.zeros(size), np.zeros(size)
    part_one, part_two = from_one[1:], from_two[2:]
    for c in range(C):
        n = _normalise(before[c * frames].reshape(N, L), n, span)
        exponents[c] = n
        one[:, 1:] = power(n[:, :-1] - n[:, 1:])
        two[:, 2:] = power(n[:, :-2] - n[:, 2:]) * can_skip[:, 2:]
        for t in range(c * frames, (c + 1) * frames):
            own, updated = after[t], before[t + 1]
            np.multiply(before[t], emissions[t], out=own)
            np.multiply(own[:-1], flat_one, out=part_one)
            np.multiply(own[:-2], flat_two, out=part_two)
            np.add(own, from_one, out=updated)
            np.add(updated, from_two, out=updated)
    return before[:-1].reshape(shape), after.reshape(shape), exponents


def power(n: IntArray) -> FloatArray:
    """Return 2^n as float64, 0 below its range."""
    bits: Any = np.minimum(np.maximum(n + 1023, 0), 2046) << 52
    powers: FloatArray = bits.view(np.float64)
    return powers


def _normalise(m: FloatArray, n: IntArray, span: int) -> IntArray:
    """Move the exponents of m [N, L] to n [N, L] in place and return the new n."""
    exponent = (m.view(np.int64) >> 52) - 1023
    exact = np.where(m > 0, n + exponent, _UNREACHED)
    slope = span * np.arange(m.shape[1])
    bounded = np.maximum.accumulate(exact + slope, axis=1) - slope
    m *= power(n - bounded)
    return bounded
