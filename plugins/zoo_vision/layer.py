"""Layer of a convolutional backbone."""

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
"""One value for both axes, or height and width."""


class Pool(nn.Module):
    """Max or average pooling.

    Args:
        size: size of the window.
        stride: stride of the window; by default the size.
        padding: padding of the feature map.
        mode: "max" or "mean".

    Shapes:
        [B, D, h, w] -> [B, D, h', w'].
    """

    def __init__(
        self,
        *,
        size: Size = 2,
        stride: Size | None = None,
        padding: Padding = 0,
        mode: Literal["max", "mean"] = "max",
    ) -> None:
        super().__init__()
        self.size = _pair(size)
        self.stride = _pair(stride or size)
        self.padding = _pair(padding)
        self.mode = mode
        if any(2 * p > k for p, k in zip(self.padding, self.size, strict=True)):
            raise ZooError(f"padding ({padding}) must be at most half of the pool size ({size})")

    def extra_repr(self) -> str:
        return f"{self.size}, stride={self.stride}, padding={self.padding}, mode={self.mode}"

    def forward(self, x: Tensor) -> Tensor:
        pool = F.max_pool2d if self.mode == "max" else F.avg_pool2d
        return pool(x, self.size, self.stride, self.padding)

    def input_size(self, output_size: HeightWidth) -> HeightWidth:
        """Return the smallest input size that gives this output size."""
        return _input_size(output_size, self.size, self.stride, self.padding)


class ConvolutionLayer(nn.Module):
    r"""Convolution followed by optional normalisation, activation and pooling.

    .. math:: y = \mathrm{pool}(f(\mathrm{norm}(W * x + b)))

    Args:
        input_dim: number of input channels.
        channels: number of output channels.
        kernel: kernel size.
        stride: stride of the convolution.
        padding: padding of the input; by default half the kernel, which preserves the size for
            odd kernels.
        bias: whether the convolution has a bias.
        norm: "batch" for batch normalisation (Ioffe and Szegedy 2015), or "none".
        activation: activation f.
        pool: pooling after the activation.

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
        height, width = self.kernel = _pair(kernel)
        self.stride = _pair(stride)
        self.padding = (height // 2, width // 2) if padding is None else _pair(padding)
        self.conv = nn.Conv2d(
            input_dim, channels, self.kernel, self.stride, self.padding, bias=bias
        )
        self.norm = nn.BatchNorm2d(channels) if norm == "batch" else None
        self.activation = activation
        self.pool = pool.build() if pool else None

    def extra_repr(self) -> str:
        return f"activation={self.activation}"

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

    def input_size(self, output_size: HeightWidth) -> HeightWidth:
        """Return the smallest input size that gives this output size."""
        if self.pool is not None:
            output_size = self.pool.input_size(output_size)
        return _input_size(output_size, self.kernel, self.stride, self.padding)


def _pair(size: int | HeightWidth) -> HeightWidth:
    return (size, size) if isinstance(size, int) else size


def _input_size(
    output_size: HeightWidth, kernel: HeightWidth, stride: HeightWidth, padding: HeightWidth
) -> HeightWidth:
    """Return the smallest input size for which a sliding window gives this output size."""
    height, width = (
        max((n - 1) * s + k - 2 * p, 1)
        for n, k, s, p in zip(output_size, kernel, stride, padding, strict=True)
    )
    return height, width
