"""Accelerations of objectives."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.objectives.chunked_cross_entropy import ChunkedCrossEntropy

ACCELERATIONS: Sequence[type[Acceleration]] = (ChunkedCrossEntropy,)
