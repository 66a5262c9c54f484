"""Waveform embedding: samples to frames by strided convolutions.

Letters: B batch, N samples, S frames, C channels.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, full_precision
from zoo_wave.conv_position import ConvPosition

Sizes = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=16)]


class Waveform(Embedding):
    r"""Reads samples by convolutions, one after another, that make ever fewer frames of them.

    .. math:: z^0 = x, \qquad z^{l} = \mathrm{gelu}(\mathrm{norm}(w^l * z^{l-1})), \qquad
        h = W\, \mathrm{LN}(z^L) + b

    Where no sample is there is NaN, behind the last one; such samples are read as silence and
    the frames that would need them are masked.

    Paper: Baevski et al. 2020, section 2 and appendix B; norms of every layer as in its LARGE
    models.

    Args:
        dim: width of a frame's vector.
        channels: of every convolution.
        kernels: how many inputs each convolution sees at once, the first first.
        strides: how far each moves on.
        bias: whether the convolutions have one.
        norm: 'group' normalises each channel of the first layer over the whole sound, 'layer'
            every layer's channels at each frame.
        eps: of the last norm.
        surroundings: how frames are told where they stand; not at all if not set.

    Shapes:
        samples [B, N] -> [B, S, dim], S as the strides leave.
    """

    name: ClassVar[str] = "waveform"
    paper: ClassVar[str] = "Baevski et al. 2020, wav2vec 2.0, arXiv:2006.11477"

    test_params: ClassVar[Mapping[str, Any]] = {
        "channels": 4,
        "kernels": [3, 2],
        "strides": [2, 1],
        "surroundings": {"kernel": 4, "groups": 2},
    }

    def __init__(
        self,
        *,
        dim: Annotated[int, Field(ge=1)],
        channels: Annotated[int, Field(ge=1)],
        kernels: Sizes,
        strides: Sizes,
        bias: bool = False,
        norm: Literal["group", "layer"] = "group",
        eps: Annotated[float, Field(gt=0)] = 1e-5,
        surroundings: Blueprint[ConvPosition] | None = None,
    ) -> None:
        super().__init__()
        if len(kernels) != len(strides):
            raise ZooError(f"there are {len(kernels)} kernels, but {len(strides)} strides")
        self.dim = dim
        self.norm = norm
        self.steps = list(zip(kernels, strides, strict=True))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels if i else 1, channels, kernel, stride=stride, bias=bias)
            for i, (kernel, stride) in enumerate(self.steps)
        )
        normed = 1 if norm == "group" else len(kernels)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(normed))
        self.last_norm = nn.LayerNorm(channels, eps=eps)
        self.map = nn.Linear(channels, dim)
        self.surroundings = surroundings.build(dim=dim) if surroundings else None

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"a waveform is samples [B, N] in floating point, not {inputs.dtype} "
                f"{list(inputs.shape)}"
            )
        if inputs.shape[1] < self._required_samples(1):
            raise ZooError(
                f"{inputs.shape[1]} samples are too few; one frame needs {self._required_samples(1)}"
            )
        count = _num_samples(inputs)
        states = torch.nan_to_num(inputs, nan=0.0)[:, None]  # [B, C, N]
        for i, convolution in enumerate(self.convolutions):
            states = convolution(states)
            count = _num_frames(count, *self.steps[i])
            if i < len(self.norms):
                states = self._normalize(states, count, self.norms[i])
            states = F.gelu(states)
        vectors: Tensor = self.map(self.last_norm(states.transpose(1, 2)))
        padding_mask = ~_length_mask(count, vectors.shape[1])[..., None]
        vectors = vectors.masked_fill(padding_mask, 0.0)
        if self.surroundings is None:
            return vectors
        positioned: Tensor = self.surroundings(vectors)
        return positioned.masked_fill(padding_mask, 0.0)

    def mask(self, inputs: Tensor) -> Tensor:
        count, max_length = _num_samples(inputs), inputs.shape[1]
        for kernel, stride in self.steps:
            count, max_length = (
                _num_frames(count, kernel, stride),
                (max_length - kernel) // stride + 1,
            )
        return _length_mask(count, max_length)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = self.map.weight
        device = generator.device if generator else weight.device
        shape = (batch, self._required_samples(length))
        return torch.randn(shape, generator=generator, device=device).to(weight)

    def _normalize(self, states: Tensor, count: Tensor, norm: nn.Module) -> Tensor:
        """states [B, C, S] normalised: at each frame, or each channel over the frames there are."""
        if self.norm == "layer":
            normed: Tensor = norm(states.transpose(1, 2)).transpose(1, 2)
            return normed
        assert isinstance(norm, nn.LayerNorm)
        wide = full_precision(states)
        real = _length_mask(count, states.shape[2])[:, None]
        total = count.clamp(min=1)[:, None, None]
        mean = (wide * real).sum(dim=2, keepdim=True) / total
        variance = ((wide - mean).square() * real).sum(dim=2, keepdim=True) / total
        scaled = ((wide - mean) * torch.rsqrt(variance + norm.eps)).to(states.dtype)
        return scaled * norm.weight[:, None] + norm.bias[:, None]

    def _required_samples(self, frames: int) -> int:
        """How many samples so many frames are made of."""
        for kernel, stride in reversed(self.steps):
            frames = (frames - 1) * stride + kernel
        return frames


def _num_samples(samples: Tensor) -> Tensor:
    """How many samples there are of each item: [B]."""
    return (~samples.isnan()).sum(dim=1)


def _num_frames(count: Tensor, kernel: int, stride: int) -> Tensor:
    return ((count - kernel).div(stride, rounding_mode="floor") + 1).clamp(min=0)


def _length_mask(count: Tensor, max_length: int) -> Tensor:
    """[B], S -> [B, S], True below the count."""
    return torch.arange(max_length, device=count.device) < count[:, None]
