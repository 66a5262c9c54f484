"""Accelerations of Transformers."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.transformer.deferred_output import DeferredOutput

ACCELERATIONS: Sequence[type[Acceleration]] = (DeferredOutput,)
