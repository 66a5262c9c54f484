"""Positions told by what stands around them."""

from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent


class ConvPosition(nn.Module):
    r"""Adds to each frame a convolution over the frames around it, which tells where it stands.

    .. math:: x'_t = x_t + \mathrm{gelu}((w * x)_t + b), \qquad
        w_{\cdot\cdot k} = g_k \frac{v_{\cdot\cdot k}}{\lVert v_{\cdot\cdot k} \rVert}

    Paper: Mohamed et al. 2019, section 2; with weight norm as in Baevski et al. 2020.

    Args:
        dim: width of a frame.
        kernel: how many frames are seen at once.
        groups: into how many parts a frame falls, each convolved by itself.

    Shapes:
        [B, S, dim], zero at padding -> [B, S, dim].
    """

    def __init__(
        self,
        *,
        dim: FromParent[int],
        kernel: Annotated[int, Field(ge=1)] = 128,
        groups: Annotated[int, Field(ge=1)] = 16,
    ) -> None:
        super().__init__()
        if dim % groups:
            raise ZooError(f"groups ({groups}) must divide dim ({dim})")
        self.groups = groups
        self.direction = nn.Parameter(
            torch.randn(dim, dim // groups, kernel) * 2 * (kernel * dim) ** -0.5
        )
        self.length = nn.Parameter(_norms(self.direction.detach()))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, frames: Tensor) -> Tensor:
        kernel = self.direction.shape[2]
        weight = self.length * self.direction / _norms(self.direction)
        seen = F.conv1d(
            frames.transpose(1, 2), weight, self.bias, padding=kernel // 2, groups=self.groups
        )[..., : frames.shape[1]]
        return frames + F.gelu(seen).transpose(1, 2)


def _norms(direction: Tensor) -> Tensor:
    """Of the weights at each place of the kernel: [1, 1, kernel]."""
    return direction.square().sum(dim=(0, 1), keepdim=True).sqrt()
