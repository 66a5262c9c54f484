"""The baseline of the expected reward."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision


class Baseline(nn.Linear):
    """Linear baseline of the expected reward, optionally with a ReLU.

    With a ReLU the bias starts at 0.5, between the rewards 0 and 1: at 0, a baseline that is
    negative for all inputs would get no gradient.

    Paper: Mnih et al. 2014, section 3.1; open implementations use both forms.

    Shapes:
        states [B, D] -> [B], in float32 or higher.
    """

    def __init__(self, input_dim: int, activation: Literal["linear", "relu"]) -> None:
        self.activation = activation
        self.weight_roles: Mapping[str, str] = {"bias": "special"} if activation == "relu" else {}
        super().__init__(input_dim, 1)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.activation == "relu":
            with torch.no_grad():
                self.bias.fill_(0.5)

    def forward(self, states: Tensor) -> Tensor:
        values = full_precision(super().forward(states))[:, 0]
        return values.relu() if self.activation == "relu" else values

    def extra_repr(self) -> str:
        return f"{self.in_features}, activation={self.activation}"
