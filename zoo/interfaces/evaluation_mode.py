"""Context manager that switches a module to evaluation mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Set evaluation mode, and restore the mode of every submodule on exit."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, training in modes:
            each.training = training
