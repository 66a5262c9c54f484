"""One layer of a convolutional backbone."""

from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, FromParent

HeightWidth = tuple[int, int]
"""Height and width."""

_Positive = Annotated[int, Field(ge=1)]
_NonNegative = Annotated[int, Field(ge=0)]
Size = _Positive | tuple[_Positive, _Positive]
Padding = _NonNegative | tuple[_NonNegative, _NonNegative]
"""One number for both sides, or height and width."""


class Pool:
    """Takes the largest or the mean of each window.

    Args:
        size: of the window.
        stride: from window to window; the size if not set.
        padding: around the map.
        how: largest or mean.
    """

    def __init__(
        self,
        *,
        size: Size = 2,
        stride: Size | None = None,
        padding: Padding = 0,
        how: Literal["max", "mean"] = "max",
    ) -> None:
        self.size = _pair(size)
        self.stride = _pair(stride or size)
        self.padding = _pair(padding)
        self.how = how
        if any(2 * p > k for p, k in zip(self.padding, self.size, strict=True)):
            raise ZooError(f"padding ({padding}) must be at most half of the pool's size ({size})")

    def __call__(self, x: Tensor) -> Tensor:
        """[B, D, h, w] -> [B, D, h', w']"""
        pool = F.max_pool2d if self.how == "max" else F.avg_pool2d
        return pool(x, self.size, self.stride, self.padding)

    def needed(self, sides: HeightWidth) -> HeightWidth:
        """How large a map must be to leave one of these sides."""
        return _needed(sides, self.size, self.stride, self.padding)


class ConvolutionLayer(nn.Module):
    r"""A convolution, normalised, bent and pooled.

    .. math:: y = \mathrm{pool}(f(\mathrm{norm}(W * x + b)))

    Args:
        input_dim: depth of what comes in.
        channels: depth of what comes out.
        kernel: size of the kernel.
        stride: from window to window.
        padding: around the image; half of the kernel if not set, which keeps odd kernels' sizes.
        bias: whether the convolution has one.
        norm: 'batch' normalises each channel over the batch (Ioffe and Szegedy 2015).
        activation: f.
        pool: what follows.

    Shapes:
        [B, input_dim, h, w] -> [B, channels, h', w'].
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        channels: _Positive,
        kernel: Size = 3,
        stride: Size = 1,
        padding: Padding | None = None,
        bias: bool = True,
        norm: Literal["none", "batch"] = "none",
        activation: Literal["relu", "gelu", "tanh", "none"] = "relu",
        pool: Blueprint[Pool] | None = None,
    ) -> None:
        super().__init__()
        high, wide = self.kernel = _pair(kernel)
        self.stride = _pair(stride)
        self.padding = (high // 2, wide // 2) if padding is None else _pair(padding)
        self.conv = nn.Conv2d(
            input_dim, channels, self.kernel, self.stride, self.padding, bias=bias
        )
        self.norm = nn.BatchNorm2d(channels) if norm == "batch" else None
        self.activation = activation
        self.pool = pool.build() if pool else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.norm is not None:
            x = self.norm(x)
        x = self._activate(x)
        return x if self.pool is None else self.pool(x)

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "relu":
            return F.relu(x)
        if self.activation == "gelu":
            return F.gelu(x)
        return x.tanh() if self.activation == "tanh" else x

    def needed(self, sides: HeightWidth) -> HeightWidth:
        """How large an image must be to leave a map of these sides."""
        if self.pool is not None:
            sides = self.pool.needed(sides)
        return _needed(sides, self.kernel, self.stride, self.padding)


def _pair(size: int | HeightWidth) -> HeightWidth:
    return (size, size) if isinstance(size, int) else size


def _needed(
    sides: HeightWidth, kernel: HeightWidth, stride: HeightWidth, padding: HeightWidth
) -> HeightWidth:
    """The least that windows of this kind must slide over to stop this often, each way."""
    height, width = (
        max((n - 1) * s + k - 2 * p, 1)
        for n, k, s, p in zip(sides, kernel, stride, padding, strict=True)
    )
    return height, width
