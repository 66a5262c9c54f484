"""Evaluation mode of a module inside a block, and of the frozen parts of a module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from torch import nn

from zoo.interfaces.module_parts import each_part


@contextlib.contextmanager
def evaluation_mode(module: nn.Module, parts: Sequence[nn.Module] | None = None) -> Iterator[None]:
    """Set evaluation mode, and restore the mode of every submodule on exit.

    Args:
        parts: the result of `each_part`, if it is known.
    """
    parts = each_part(module) if parts is None else parts
    trained = [part for part in parts if part.training]
    if trained:
        module.eval()
    try:
        yield
    finally:
        for part in parts:
            if part.training:
                part.training = False
        for part in trained:
            part.training = True


def set_frozen_to_evaluation(module: nn.Module) -> None:
    """Set evaluation mode in each part whose parameters are all frozen, unless all parts are."""
    weights = list(module.parameters())
    trained = sum(weight.requires_grad for weight in weights)
    if 0 < trained < len(weights):
        for child in module.children():
            if not any(weight.requires_grad for weight in child.parameters()):
                if any(True for _ in child.parameters()):
                    child.eval()
            else:
                set_frozen_to_evaluation(child)
