"""Logits of a tied output layer with packed weights in decoding loops."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration
from zoo_fast.device import packed_linear
from zoo_tokens.token import Token


class PackedUnembed(Acceleration):
    """Uses the packed embedding table on the CPU, inside `PackedWeights.use`."""

    name: ClassVar[str] = "packed-unembed"
    serves: ClassVar[type[Token]] = Token

    def why_not(self, target: Token, device: torch.device) -> str | None:
        return packed_linear.why_not_packed(target.table.weight, device)

    def unembed(self, target: Token, states: Tensor) -> Tensor:
        states = target.project_output(states)
        return packed_linear.linear(states, target.table.weight)
