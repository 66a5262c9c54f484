"""Accelerations of seq2seq."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.seq2seq.captured_encoder import CapturedEncoder

ACCELERATIONS: Sequence[type[Acceleration]] = (CapturedEncoder,)
