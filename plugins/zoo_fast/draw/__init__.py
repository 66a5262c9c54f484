"""Accelerations of DRAW."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.draw.compiled_windows import CompiledReader, CompiledWriter

ACCELERATIONS: Sequence[type[Acceleration]] = (CompiledReader, CompiledWriter)
