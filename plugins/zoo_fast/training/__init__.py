"""Accelerations of training."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.training.captured_step import CapturedStep
from zoo_fast.training.deferred_loss import DeferredLoss

ACCELERATIONS: Sequence[type[Acceleration]] = (CapturedStep, DeferredLoss)
