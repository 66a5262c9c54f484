"""Conditions and preparations of training steps that are captured as CUDA graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.acceleration.conditions import has_hooks

MAX_GRAPHS = 192
"""Number of shapes that are captured: texts of up to 200 tokens, in batches of a number of tokens,
have about as many. The graphs share their memory; for Transformers of twelve layers each takes
another 2.5 MB of the device and 6.5 MB of the host."""


def why_not_captured(
    module: nn.Module, optimiser: torch.optim.Optimizer, device: torch.device
) -> str | None:
    """Return the reason why a step cannot be captured; None if capture can be tried."""
    if device.type != "cuda":
        return f"the device is '{device.type}', not 'cuda'"
    if has_hooks(module):
        return "the model has module hooks"
    if any("forward" in part.__dict__ for part in module.modules()):
        return "a part of the model has another forward method, such as one that is recomputed"
    for group in optimiser.param_groups:
        if "capturable" not in group and not group.get("fused"):
            return f"optimiser {type(optimiser).__name__} has no option 'capturable' or 'fused'"
    return None


def make_capturable(optimiser: torch.optim.Optimizer) -> None:
    """Keep the learning rates and the step counts of an optimiser on the device.

    The state of a checkpoint has step counts on the CPU, unless the optimiser is fused.
    """
    for group in optimiser.param_groups:
        device = group["params"][0].device
        group["lr"] = torch.tensor(float(group["lr"]), device=device)
        if "capturable" in group:
            group["capturable"] = True
            for parameter in group["params"]:
                state = optimiser.state.get(parameter, {})
                if isinstance(state.get("step"), Tensor):
                    state["step"] = state["step"].to(device)
