"""Accelerations of generation."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.generation.fast_loop import FastDecodingLoop
from zoo_fast.generation.packed_layer import PackedLinear

ACCELERATIONS: Sequence[type[Acceleration]] = (FastDecodingLoop, PackedLinear)
