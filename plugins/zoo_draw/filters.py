"""Filter banks: a grid of Gaussians over an image.

Notation: B batch size, N side of the grid, A image width. The image height, B in the paper, is
``height`` here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision


@dataclass(frozen=True)
class FilterBanks:
    """Filters of a grid and their intensity: F_X [B, N, A], F_Y [B, N, height], gamma [B]."""

    F_X: Tensor
    F_Y: Tensor
    gamma: Tensor

    def window(self) -> Tensor:
        """Return the weight of each pixel, averaged over the grid: [B, 1, 1, height * A]."""
        pixels = self.F_Y.mean(dim=1)[:, :, None] * self.F_X.mean(dim=1)[:, None]
        return pixels.flatten(1)[:, None, None]

    @full_precision
    def read(self, images: Tensor) -> Tensor:
        """Compute gamma F_Y x F_X^T, equation 27: [B, C, height, A] -> [B, C, N, N]."""
        return self.gamma[:, None, None, None] * (self.F_Y[:, None] @ images @ self.F_X[:, None].mT)

    @full_precision
    def write(self, patches: Tensor) -> Tensor:
        """Compute F_Y^T w F_X / gamma, equation 29: [B, C, N, N] -> [B, C, height, A]."""
        images = self.F_Y[:, None].mT @ patches @ self.F_X[:, None]
        return images / self.gamma[:, None, None, None]


class GridParameters(nn.Linear):
    """Linear layer from states [B, hidden] to the parameters of a grid [B, 5].

    Initially the grid covers the image evenly: its N x N points are the centres of equal parts, and
    sigma is half the stride. With zeros, a grid of 2 x 2 points would be at the corners of the
    image, which are empty in most data sets.

    Args:
        N: side of the grid.
        size: the larger side of the image.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weight": "special", "bias": "special"}

    def __init__(self, hidden: int, *, N: int, size: int) -> None:
        self.N, self.size = N, size
        super().__init__(hidden, 5)

    def reset_parameters(self) -> None:
        super().reset_parameters()  # keeps the sequence of random numbers of earlier versions
        stride = self.size / self.N
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            self.bias[2] = 2 * math.log(stride / 2)
            if self.N > 1 and self.size > 1:
                self.bias[3] = math.log(stride * (self.N - 1) / (self.size - 1))


def filter_banks(parameters: Tensor, N: int, height: int, width: int) -> FilterBanks:
    r"""Compute the filter banks of equations 19 to 26 of Gregor et al. 2015.

    .. math::
        g_X = \tfrac{A + 1}{2} (\tilde g_X + 1), \quad
        \delta = \tfrac{\max(A, B) - 1}{N - 1} \tilde\delta, \quad
        \mu^i_X = g_X + (i - N/2 - 0.5) \delta, \quad
        F_X[i, a] = \tfrac{1}{Z_X} \exp\!\Big({-}\tfrac{(a - \mu^i_X)^2}{2 \sigma^2}\Big)

    where i and a start at 1 and Z normalises each filter to sum to 1 over the image. A grid of one
    point has no stride.

    Shapes:
        parameters [B, 5]: x and y of the centre, log sigma^2, log delta, log gamma.
    """
    x, y, log_variance, log_delta, log_gamma = parameters.unbind(dim=-1)
    index = torch.arange(N, device=parameters.device) - (N - 1) / 2
    offsets = index * ((max(width, height) - 1) / max(N - 1, 1) * log_delta.exp())[:, None]
    factor = (-log_variance).exp()[:, None, None] / -2

    def gaussian_filters(centre: Tensor, pixels: int) -> Tensor:
        means = ((pixels + 1) / 2 * (centre + 1))[:, None] + offsets  # [B, N]
        a = torch.arange(1, pixels + 1, device=parameters.device)
        logits = (a - means[..., None]).square() * factor
        # The softmax divides by Z without underflow if the grid is far outside the image.
        return logits.softmax(dim=-1)

    return FilterBanks(gaussian_filters(x, width), gaussian_filters(y, height), log_gamma.exp())
