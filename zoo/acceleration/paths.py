"""Which path each part of a model takes, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from zoo.acceleration.binding import plain_class
from zoo.acceleration.conditions import why_not
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
    served = [
        (name, module, acceleration)
        for name, module in model.named_modules()
        for acceleration in found.get(plain_class(module), ())
    ]
    reasons = {}
    for mode in (False, True):
        with _training(model, mode), torch.set_grad_enabled(mode):
            reasons[mode] = [why_not(each(), module, device) for _, module, each in served]
    for (name, _, acceleration), *why in zip(served, reasons[False], reasons[True], strict=True):
        yield ModulePath(name, acceleration.name, *why)


@contextmanager
def _training(model: nn.Module, mode: bool) -> Iterator[None]:
    """Set the mode of all modules in the block."""
    before = {module: module.training for module in model.modules()}
    try:
        for module in before:
            module.training = mode
        yield
    finally:
        for module, training in before.items():
            module.training = training
