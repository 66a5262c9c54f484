"""Logits of an output layer that is tied to a token embedding, with packed weights."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.device.packed_linear import linear, packed_weights
from zoo.plugin import Acceleration
from zoo_tokens.token import Token


class PackedUnembed(Acceleration):
    """Computes logits with packed weights in generation on the CPU."""

    name: ClassVar[str] = "packed-unembed"
    serves: ClassVar[type[Any]] = Token
    calls_parts: ClassVar[bool] = True

    def why_not(self, target: Token, device: torch.device) -> str | None:
        return None if packed_weights() is not None else "no packed weights are in use"

    def unembed(self, target: Token, states: Tensor) -> Tensor:
        if target.map is not None:
            states = states @ target.map.weight
        return linear(states, target.table.weight)
