"""Laws of components that are modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable


def reset_parameters(config: Configuration) -> None:
    """Calling `reset_parameters` of every submodule, children first, initialises all parameters in
    place; every class that owns parameters has the method."""
    part = config.build()
    if not isinstance(part, nn.Module):
        raise NotApplicable("it is not a module")
    before = dict(part.named_parameters())
    with torch.no_grad():
        for parameter in before.values():
            parameter.fill_(torch.nan)
    for module in reversed(list(part.modules())):
        reset: Any = getattr(module, "reset_parameters", None)
        if reset is not None:
            reset()
        elif type(module).__module__.partition(".")[0] not in ("torch", "torchvision"):
            owned = [name for name, _ in module.named_parameters(recurse=False)]
            assert not owned, (
                f"{type(module).__name__} owns {owned[0]}, but has no reset_parameters"
            )
    for name, parameter in part.named_parameters():
        assert parameter is before[name], f"reset_parameters replaces {name}"
        assert not parameter.isnan().any(), f"reset_parameters does not initialise {name}"


LAWS = (Law("reset-parameters", reset_parameters),)
