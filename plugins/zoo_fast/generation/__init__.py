"""Accelerations of generation."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.generation.loop import FastDecodingLoop
from zoo_fast.generation.packed_linear import PackedLinear

ACCELERATIONS: Sequence[type[Acceleration]] = (FastDecodingLoop, PackedLinear)
