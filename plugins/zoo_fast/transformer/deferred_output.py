"""Deferred logits of the output layer of a Transformer."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration
from zoo_fast.training.deferred_logits import DeferredLogits, is_deferring
from zoo_transformer.output import Output


class DeferredOutput(Acceleration):
    """Returns logits that are computed when they are used, inside of `DeferredLoss`.

    A tied output layer calls the embedding, which defers them.
    """

    name: ClassVar[str] = "deferred-output"
    serves: ClassVar[type[Any]] = Output
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Output, device: torch.device) -> str | None:
        if target.map is None:
            return "the output layer is tied"
        if target.cap is not None:
            return "the logits have a cap"
        if target.transform is not None:
            return "a layer is before the logits"
        return None if is_deferring() else "the logits are not deferred"

    def forward(self, target: Output, states: Tensor) -> Tensor:
        assert target.map is not None
        if target.scale != 1:
            states = states * target.scale
        return DeferredLogits(states, target.map.weight, bias=target.bias)
