"""Layer scale."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn


class LayerScale(nn.Module):
    r"""Learned factor of each feature of a sublayer's output (Touvron et al. 2021, CaiT).

    .. math:: x \leftarrow x + \lambda \odot \mathrm{sublayer}(x)

    Args:
        width: width of the last dimension.
        initial: initial value of all factors.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weight": "special"}

    def __init__(self, width: int, initial: float) -> None:
        super().__init__()
        self.width, self.initial = width, initial
        self.weight = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, self.initial)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight

    def extra_repr(self) -> str:
        return f"{self.width}, initial={self.initial}"


def scale_output(scale: LayerScale | None, output: Tensor) -> Tensor:
    """Return the output of a sublayer, scaled if it has a layer scale."""
    if scale is None:
        return output
    scaled: Tensor = scale(output)
    return scaled
