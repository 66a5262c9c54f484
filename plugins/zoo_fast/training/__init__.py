"""Accelerations of training."""

from collections.abc import Sequence

from zoo.plugin import Acceleration

ACCELERATIONS: Sequence[type[Acceleration]] = ()
