"""Laws of components that are modules."""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

import torch
from torch import nn

from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable


def _build(config: Configuration) -> Any:
    part = config.build()
    if not isinstance(part, nn.Module):
        raise NotApplicable("it is not a module")
    return part


def reset_parameters(config: Configuration) -> None:
    """Calling `reset_parameters` of every submodule, children first, initialises all parameters in
    place; every class that owns parameters has the method."""
    part = _build(config)
    before = dict(part.named_parameters())
    with torch.no_grad():
        for parameter in before.values():
            parameter.fill_(torch.nan)
    for module in reversed(list(part.modules())):
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
        elif type(module).__module__.partition(".")[0] not in ("torch", "torchvision"):
            owned = [name for name, _ in module.named_parameters(recurse=False)]
            assert not owned, (
                f"{type(module).__name__} owns {owned[0]}, but has no reset_parameters"
            )
    for name, parameter in part.named_parameters():
        assert parameter is before[name], f"reset_parameters replaces {name}"
        assert not parameter.isnan().any(), f"reset_parameters does not initialise {name}"


def extra_repr(config: Configuration) -> None:
    """The repr shows every integer parameter of the constructor, unless its name is that of a
    submodule or a tensor."""
    part = _build(config)
    values = {**config.params, **config.parent_values()}
    shown = part.extra_repr()
    missing = [
        parameter.name
        for parameter in parameters(config.cls)
        if type(values.get(parameter.name, parameter.default)) is int
        and not isinstance(getattr(part, parameter.name, 0), (nn.Module, torch.Tensor, NoneType))
        and not re.search(rf"\b{parameter.name}=", shown)
    ]
    assert not missing, f"extra_repr does not show {', '.join(missing)}: {shown!r}"


LAWS = (
    Law("reset-parameters", reset_parameters),
    Law("extra-repr", extra_repr),
)
