"""Which parts of a model are accelerated on this machine, and why not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import nn

from zoo.acceleration import module_paths


@dataclass(frozen=True)
class AccelerationPath:
    """The path of all modules for which an acceleration gives the same reasons.

    Args:
        acceleration: name of the acceleration.
        modules: names of the modules, with ``*`` in place of indices.
        device: 'cuda' if a GPU is available, else 'cpu'.
        evaluation: reason for the reference path in evaluation mode; None if it is accelerated.
        training: reason for the reference path in training mode; None if it is accelerated.
    """

    acceleration: str
    modules: tuple[str, ...]
    device: str
    evaluation: str | None
    training: str | None

    def describe(self) -> str:
        """Return the path and the reason in one line."""
        evaluation, training = (_describe(each) for each in (self.evaluation, self.training))
        if evaluation == training:
            return evaluation
        return f"{evaluation}; in training: {training}"


def find_paths(model: nn.Module) -> list[AccelerationPath]:
    """Return the paths of the parts of a model on this machine, in both modes.

    A call can still use the reference path because of its arguments, for example if it returns the
    attention weights.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    modules: dict[tuple[str, str | None, str | None], dict[str, None]] = {}
    for path in module_paths(model, device):
        key = path.acceleration, path.evaluation, path.training
        modules.setdefault(key, {})[re.sub(r"\.\d+(?=\.|$)", ".*", path.name)] = None
    return [
        AccelerationPath(acceleration, tuple(names), device.type, evaluation, training)
        for (acceleration, evaluation, training), names in modules.items()
    ]


def _describe(reason: str | None) -> str:
    return "accelerated" if reason is None else f"reference path ({reason})"
