"""Convolutional front end over the frames of another embedding."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, TensorSchema

Sizes = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=16)]


class Convolved(Embedding):
    r"""Convolutional front end: stacked 1-D convolutions over the frames of another embedding.

    .. math:: h^0 = \mathrm{inner}(a), \qquad h^l = f(w^l * h^{l-1} + b^l)

    Convolutions are centred; one of stride n returns every n-th frame, rounded up. Frames of
    padding are 0 after each convolution, so that an item does not depend on those beside it.

    Paper: Radford et al. 2023, section 2.2: two convolutions over log-mel frames, the second of
    stride 2; Synnaeve et al. 2020, arXiv:1911.08460, section 2.1, for gated linear units.

    Args:
        inner: embedding of the frames, for example a log-mel spectrogram.
        dim: width of a vector.
        kernels: kernel size of each convolution; odd.
        strides: stride of each convolution.
        channels: width of the vectors between convolutions; dim if not set.
        activation: f; 'glu' is a gated linear unit: one half of the channels of each convolution
            times the sigmoid of the other half.
        scaled: whether the vectors are multiplied by √dim.

    Shapes:
        inputs of ``inner`` with S frames -> [B, S / product of strides, rounded up, dim].
    """

    name: ClassVar[str] = "convolved"
    paper: ClassVar[str] = (
        "Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision, "
        "arXiv:2212.04356"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"kernels": [3, 5], "strides": [1, 2]}

    def __init__(
        self,
        *,
        inner: Blueprint[Embedding],
        dim: Annotated[int, Field(ge=1)],
        kernels: Sizes,
        strides: Sizes,
        channels: Annotated[int, Field(ge=1)] | None = None,
        activation: Literal["gelu", "glu"] = "gelu",
        scaled: bool = False,
    ) -> None:
        super().__init__()
        if len(kernels) != len(strides):
            raise ZooError(
                f"kernels has {len(kernels)} values, but strides has {len(strides)}; both need one "
                "value per convolution"
            )
        if any(kernel % 2 == 0 for kernel in kernels):
            raise ZooError(f"kernels ({kernels}) must be odd")
        self.dim, self.kernels, self.strides = dim, kernels, strides
        self.channels, self.activation, self.scaled = channels, activation, scaled
        self.inner = inner.build()
        widths = [self.inner.dim, *[channels or dim] * (len(kernels) - 1), dim]
        parts = 2 if activation == "glu" else 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(widths[i], parts * widths[i + 1], kernel, stride, kernel // 2)
            for i, (kernel, stride) in enumerate(zip(kernels, strides, strict=True))
        )

    def forward(self, inputs: Tensor) -> Tensor:
        states: Tensor = self.inner(inputs).transpose(1, 2)  # [B, D, S]
        mask = self.inner.mask(inputs)
        for convolution, stride in zip(self.convolutions, self.strides, strict=True):
            mask = mask[:, ::stride]
            states = convolution(states)
            states = F.glu(states, dim=1) if self.activation == "glu" else F.gelu(states)
            states = states * mask[:, None]  # [B, D, S]
        states = states * math.sqrt(self.dim) if self.scaled else states
        return states.transpose(1, 2)

    def input_schema(self) -> TensorSchema:
        return self.inner.input_schema().rename("S", "L")

    def mask(self, inputs: Tensor) -> Tensor:
        return self.inner.mask(inputs)[:, :: math.prod(self.strides)]

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        return self.inner.example(batch, length * math.prod(self.strides), generator)
