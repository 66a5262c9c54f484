"""Random numbers of examples, computed for many examples at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_ROW_BITS = np.uint64(24)
"""An example has up to 2^24 numbers."""


def random_numbers(seed: int, indices: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return uniform random numbers from 0 to 1 (exclusive) for some examples.

    They depend on the seed and the index of the example only; a larger `count` adds numbers and
    does not change the first ones. They are numbers of the sequence SplitMix64 (Steele, Lea and
    Flood 2014, Fast splittable pseudorandom number generators), so that those of many examples are
    computed at once.

    Args:
        indices: the indices of the examples [B], below 2^40.
        count: the number of random numbers of an example, at most 2^24.

    Returns:
        [B, count].
    """
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    rows = np.asarray(indices, dtype=np.uint64) << _ROW_BITS
    z = start + _GAMMA * (rows[:, None] | np.arange(count, dtype=np.uint64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    numbers: NDArray[np.float64] = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def random_integers(numbers: ArrayLike, below: ArrayLike) -> NDArray[np.int64]:
    """Return integers from 0 to `below` (exclusive) for uniform random numbers."""
    return (np.asarray(numbers) * below).astype(np.int64)


def random_generators(
    seed: np.random.SeedSequence, indices: Sequence[int]
) -> Iterator[np.random.Generator]:
    """Yield the random generator of each example.

    It is one object, which is set to the numbers of the next example, because a new generator takes
    ten times as long.
    """
    source = np.random.Philox(seed)
    generator, state = np.random.Generator(source), source.state
    for index in indices:
        state["state"]["counter"][2] = index
        source.state = state
        yield generator
