"""Linear layers with packed weights in decoding loops."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Linear
from zoo_fast.device import packed_linear


class PackedLinear(Acceleration):
    """Uses packed weights on the CPU, inside `PackedWeights.use`."""

    name: ClassVar[str] = "packed-linear"
    serves: ClassVar[type[Linear]] = Linear

    def why_not(self, target: Linear, device: torch.device) -> str | None:
        return packed_linear.why_not_packed(target.weight, device)

    def forward(self, target: Linear, input: Tensor) -> Tensor:
        return packed_linear.linear(input, target.weight, target.bias)
