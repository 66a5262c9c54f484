"""Which path each part of a model takes, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from zoo.acceleration.binding import plain_class
from zoo.acceleration.conditions import why_not
from zoo.interfaces import Acceleration
from zoo.registry.component_registry import ComponentRegistry, default_registry


@dataclass(frozen=True)
class ModulePath:
    """The path of a part on a device.

    Args:
        name: name of the module in the model.
        acceleration: name of the acceleration.
        evaluation: why it is not used in evaluation mode without gradients; None if it is.
        training: why it is not used in training mode; None if it is.
    """

    name: str
    acceleration: str
    evaluation: str | None
    training: str | None


def module_paths(
    model: nn.Module, device: torch.device, registry: ComponentRegistry | None = None
) -> Iterator[ModulePath]:
    """Yield the path of each part that an acceleration serves; the model may be on the meta device.

    A call can still use the reference path because of its arguments.
    """
    found = (registry or default_registry()).accelerations
    for name, module in model.named_modules():
        for acceleration in found.get(plain_class(module), ()):
            evaluation, training = (
                _reason(acceleration(), module, device, mode) for mode in (False, True)
            )
            yield ModulePath(name, acceleration.name, evaluation, training)


def _reason(
    acceleration: Acceleration, module: nn.Module, device: torch.device, training: bool
) -> Any:
    before = module.training
    try:
        module.train(training)
        with torch.set_grad_enabled(training):
            return why_not(acceleration, module, device)
    finally:
        module.train(before)
