"""Losses of which the logits are deferred."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import Acceleration, reference
from zoo.training.local_step import LossModule
from zoo_fast.training.deferred_logits import defer_logits, uses_deferred_logits


class DeferredLoss(Acceleration):
    """Lets the objective compute the loss from the output layer, without keeping the logits."""

    name: ClassVar[str] = "deferred-loss"
    serves: ClassVar[type[Any]] = LossModule
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True

    def why_not(self, target: LossModule, device: torch.device) -> str | None:
        if not uses_deferred_logits(target.objective):
            return f"objective '{target.objective.name}' needs the logits"
        if _is_sharded(target.model):
            return "the parameters of the output layer are sharded again before the loss"
        return None

    def forward(
        self, target: LossModule, batch: Mapping[str, Tensor], weighted: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        with defer_logits():
            loss: Tensor | tuple[Tensor, Tensor] = reference(target, "forward")(batch, weighted)
        return loss


def _is_sharded(module: nn.Module) -> bool:
    """Return whether a module is sharded, without importing a module that takes 0.6 s."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(module, fsdp.FSDPModule)
