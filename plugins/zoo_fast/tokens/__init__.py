"""Accelerations of tokens."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.tokens.packed_unembed import PackedUnembed

ACCELERATIONS: Sequence[type[Acceleration]] = (PackedUnembed,)
