"""Convolutional position embedding."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent


class ConvPosition(nn.Module):
    r"""Convolutional position embedding: add a convolution over the surrounding frames.

    .. math:: x'_t = x_t + \mathrm{gelu}((w * x)_t + b), \qquad
        w_{\cdot\cdot k} = g_k \frac{v_{\cdot\cdot k}}{\lVert v_{\cdot\cdot k} \rVert}

    Paper: Mohamed et al. 2019, section 2; weight normalisation as in Baevski et al. 2020.

    Args:
        dim: width of a frame.
        kernel: kernel size in frames.
        groups: number of convolution groups.

    Shapes:
        [B, S, dim], zero at padding -> [B, S, dim].
    """

    weight_roles: ClassVar[Mapping[str, str]] = {
        "direction": "special",
        "length": "special",
        "bias": "special",
    }

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
        self.dim = dim
        self.kernel = kernel
        self.groups = groups
        self.direction = nn.Parameter(torch.empty(dim, dim // groups, kernel))
        self.length = nn.Parameter(torch.empty(1, 1, kernel))
        self.bias = nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Sample the direction, set the length to its norm and the bias to 0."""
        std = (self.kernel * self.dim) ** -0.5
        self.direction.copy_(torch.randn_like(self.direction) * 2 * std)
        self.length.copy_(_norms(self.direction))
        self.bias.zero_()

    def extra_repr(self) -> str:
        return f"{self.dim}, kernel={self.kernel}, groups={self.groups}"

    def forward(self, frames: Tensor) -> Tensor:
        weight = self.length * self.direction / _norms(self.direction)
        padding = self.kernel // 2
        convolved = F.conv1d(
            frames.transpose(1, 2), weight, self.bias, padding=padding, groups=self.groups
        )[..., : frames.shape[1]]
        return frames + F.gelu(convolved).transpose(1, 2)


def _norms(direction: Tensor) -> Tensor:
    """Return the norm of the weights at each kernel position: [1, 1, kernel]."""
    return direction.square().sum(dim=(0, 1), keepdim=True).sqrt()
