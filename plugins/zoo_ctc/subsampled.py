"""Convolutional subsampling of another embedding."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, TensorSchema


class Subsampled(Embedding):
    r"""Convolutional subsampling: 2-D convolutions with stride 2 over frames and features.

    .. math::
        h^0 = \mathrm{inner}(a), \quad h^l = \mathrm{ReLU}(W^l *_2 h^{l-1} + b^l), \quad
        x_s = V\, \mathrm{flat}(h^L_s) + c

    Each convolution halves the number of frames S, rounded up, and of features.

    Paper: Dong et al. 2018, section 3.3; Amodei et al. 2016, section 3.4, with other kernels.

    Args:
        inner: embedding whose frames are subsampled.
        dim: width of a vector.
        layers: number of convolutions; two leave a quarter of the frames.
        channels: number of channels of each convolution.
        kernel: kernel size in frames and features; must be odd.

    Shapes:
        inputs of ``inner`` with S frames -> [B, S / 2^layers rounded up, dim].
    """

    name: ClassVar[str] = "subsampled"
    paper: ClassVar[str] = (
        "Dong et al. 2018, Speech-Transformer: A No-Recurrence Sequence-to-Sequence Model for "
        "Speech Recognition"
    )

    def __init__(
        self,
        *,
        inner: Blueprint[Embedding],
        dim: Annotated[int, Field(ge=1)],
        layers: Annotated[int, Field(ge=1, le=4)] = 2,
        channels: Annotated[int, Field(ge=1)] = 32,
        kernel: Annotated[int, Field(ge=1)] = 3,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ZooError(f"kernel ({kernel}) must be odd")
        self.dim = dim
        self.channels = channels
        self.kernel = kernel
        self.inner = inner.build()
        self.layers = nn.ModuleList(
            nn.Conv2d(1 if layer == 0 else channels, channels, kernel, 2, kernel // 2)
            for layer in range(layers)
        )
        self.out = nn.Linear(channels * _subsampled_size(self.inner.dim, layers), dim)

    def forward(self, inputs: Tensor) -> Tensor:
        states, mask = self.inner(inputs)[:, None], self.inner.mask(inputs)  # [B, 1, S, D]
        for layer in self.layers:
            mask = mask[:, ::2]
            states = layer(states).relu() * mask[:, None, :, None]  # [B, channels, S, D]
        vectors: Tensor = self.out(states.transpose(1, 2).flatten(2))
        return vectors * mask[..., None]

    def input_schema(self) -> TensorSchema:
        return self.inner.input_schema().rename("S", "L")

    def mask(self, inputs: Tensor) -> Tensor:
        return self.inner.mask(inputs)[:, :: 2 ** len(self.layers)]

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        return self.inner.example(batch, length * 2 ** len(self.layers), generator)


def _subsampled_size(size: int, times: int) -> int:
    return size if times == 0 else _subsampled_size((size + 1) // 2, times - 1)
