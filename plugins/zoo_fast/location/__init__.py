"""Accelerations of location."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.location.step_kernel import LocationTriton

ACCELERATIONS: Sequence[type[Acceleration]] = (LocationTriton,)
