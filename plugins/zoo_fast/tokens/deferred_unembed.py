"""Deferred logits of an output layer that is tied to a token embedding."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration
from zoo_fast.training.deferred_logits import DeferredLogits, is_deferring
from zoo_tokens.token import Token


class DeferredUnembed(Acceleration):
    """Returns logits that are computed when they are used, inside of `DeferredLoss`."""

    name: ClassVar[str] = "deferred-unembed"
    serves: ClassVar[type[Any]] = Token
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True

    def why_not(self, target: Token, device: torch.device) -> str | None:
        return None if is_deferring() else "the logits are not deferred"

    def unembed(self, target: Token, states: Tensor) -> Tensor:
        states = target.project_output(states)
        return DeferredLogits(states, target.table.weight, padding=target.table.padding_idx)
