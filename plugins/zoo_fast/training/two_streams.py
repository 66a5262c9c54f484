"""An optimiser's update on two streams, in a captured step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_INDEPENDENT = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
"""Optimisers that update each parameter on its own."""


def step_on_two_streams(optimiser: torch.optim.Optimizer, stream: torch.cuda.Stream) -> None:
    """Update half of the parameters on the second stream, and the others beside it.

    The kernels of torch's fused optimisers have too few blocks to fill a large GPU. Other
    optimisers, and those with hooks, are called once.
    """
    hooks = optimiser._optimizer_step_pre_hooks or optimiser._optimizer_step_post_hooks
    if type(optimiser) not in _INDEPENDENT or hooks:
        optimiser.step()
        return
    current = torch.cuda.current_stream()
    stream.wait_stream(current)
    groups = optimiser.param_groups
    before = [group["params"] for group in groups]
    halves = [halve(parameters) for parameters in before]
    try:
        for index, used in enumerate((stream, current)):
            for group, half in zip(groups, halves, strict=True):
                group["params"] = half[index]
            with torch.cuda.stream(used):
                optimiser.step()
    finally:
        for group, parameters in zip(groups, before, strict=True):
            group["params"] = parameters
    current.wait_stream(stream)


def halve(parameters: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Divide parameters into two lists with nearly the same number of elements."""
    first: list[Tensor] = []
    second: list[Tensor] = []
    difference = 0
    for parameter in sorted(parameters, key=Tensor.numel, reverse=True):
        if difference <= 0:
            first.append(parameter)
            difference += parameter.numel()
        else:
            second.append(parameter)
            difference -= parameter.numel()
    return first, second
