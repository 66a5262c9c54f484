"""Pairs of prefix and label that can be among the best extensions of a beam.

Notation: W prefixes in the beam, V vocabulary including the blank.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]


class Pairs(NamedTuple):
    """Q pairs of the rank of a prefix and the rank of a label.

    Shapes:
        prefix, label [Q]; number [W, V], the number of each pair, Q for other pairs.
    """

    prefix: IntArray
    label: IntArray
    number: IntArray


@functools.lru_cache(maxsize=256)
def pairs(prefixes: int, labels: int, width: int | None) -> Pairs:
    """Return the pairs whose sum of scores can be among the best ``width``; all if it is None.

    Prefixes and labels are numbered from the best. The pairs of better or equal rank in both have
    no lower scores, except one for each prefix: the extension by its last label, which needs a
    blank in between. Extensions that are merged with a prefix of the beam do not count as
    exceptions, because the score of that prefix is no lower. A pair with ``width`` others before
    it is not needed.
    """
    prefix, label = np.indices((prefixes, labels))
    needed = np.ones((prefixes, labels), dtype=bool)
    if width is not None:
        needed = (prefix + 1) * label <= width
    number = np.full((prefixes, labels), needed.sum())
    number[needed] = np.arange(needed.sum())
    return Pairs(prefix[needed], label[needed], number)
