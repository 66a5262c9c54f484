"""Accelerations of encoders with an external memory."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.memory.compiled_memory import CompiledDNC, CompiledNTM

ACCELERATIONS: Sequence[type[Acceleration]] = (CompiledDNC, CompiledNTM)
