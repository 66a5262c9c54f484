"""Weighted sum of the states of all layers."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn


class LayerMix(nn.Module):
    r"""Weighted sum of the states of all layers, with weights that do not depend on the position.

    .. math:: \mathrm{ELMo}_k = \gamma \sum_j s_j h_{k,j}, \qquad s = \mathrm{softmax}(w)

    Paper: Peters et al. 2018, equation 1.

    Args:
        layers: number of layers.

    Shapes:
        [..., layers, D] -> [..., D].
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weights": "special", "gamma": "special"}

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(layers))
        self.gamma = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weights)
        nn.init.ones_(self.gamma)

    def forward(self, states: Tensor) -> Tensor:
        s = self.weights.softmax(dim=0)
        return self.gamma * torch.einsum("j,...jd->...d", s, states)

    def extra_repr(self) -> str:
        return f"layers={len(self.weights)}"
