"""Accelerations of recurrent."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.recurrent.decoders import (
    AttentiveSequence,
    LuongSequence,
    PlainSequence,
    PointerSequence,
)
from zoo_fast.recurrent.stacks import StackKernels

ACCELERATIONS: Sequence[type[Acceleration]] = (
    StackKernels,
    PlainSequence,
    AttentiveSequence,
    LuongSequence,
    PointerSequence,
)
