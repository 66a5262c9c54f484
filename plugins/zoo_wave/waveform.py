"""Waveform embedding: strided convolutions from samples to frames.

Notation: B batch size, N samples, S frames, C channels.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, TensorSchema, rename_params
from zoo_wave.conv_position import ConvPosition
from zoo_wave.masked_group_norm import MaskedGroupNorm, length_mask

Sizes = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=16)]


class Waveform(Embedding):
    r"""Waveform embedding: stacked strided 1-D convolutions over raw samples.

    .. math:: z^0 = x, \qquad z^{l} = \mathrm{gelu}(\mathrm{norm}(w^l * z^{l-1})), \qquad
        h = W\, \mathrm{LN}(z^L) + b

    Waveforms are padded at the end with NaN. Padding is replaced with 0, and frames that would
    include padding are masked.

    Paper: Baevski et al. 2020, section 2 and appendix B; ``norm: layer`` as in its LARGE models.

    Args:
        dim: width of a frame.
        channels: number of channels of each convolution.
        kernels: kernel size of each convolution.
        strides: stride of each convolution.
        bias: whether the convolutions have a bias.
        norm: "group" normalises each channel of the first layer over all frames; "layer"
            normalises the channels of every layer at each frame.
        last_norm: whether the frames are normalised before the projection.
        eps: epsilon of the last layer norm.
        conv_position: convolutional position embedding; none if not set.

    Shapes:
        samples [B, N] -> [B, S, dim].
    """

    name: ClassVar[str] = "waveform"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = "Baevski et al. 2020, wav2vec 2.0, arXiv:2006.11477"

    test_params: ClassVar[Mapping[str, Any]] = {
        "channels": 4,
        "kernels": [3, 2],
        "strides": [2, 1],
        "conv_position": {"kernel": 4, "groups": 2},
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
        last_norm: bool = True,
        eps: Annotated[float, Field(gt=0)] = 1e-5,
        conv_position: Blueprint[ConvPosition] | None = None,
    ) -> None:
        super().__init__()
        if len(kernels) != len(strides):
            raise ZooError(
                f"kernels has {len(kernels)} values, but strides has {len(strides)}; both need one "
                "value per convolution"
            )
        self.dim = dim
        self.channels = channels
        self.kernels = kernels
        self.strides = strides
        self.norm = norm
        self.steps = list(zip(kernels, strides, strict=True))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels if i else 1, channels, kernel, stride=stride, bias=bias)
            for i, (kernel, stride) in enumerate(self.steps)
        )
        self.norms = nn.ModuleList(
            [MaskedGroupNorm(channels)]
            if norm == "group"
            else [nn.LayerNorm(channels) for _ in kernels]
        )
        self.last_norm = nn.LayerNorm(channels, eps=eps) if last_norm else None
        self.map = nn.Linear(channels, dim)
        self.surroundings = conv_position.build(dim=dim) if conv_position else None

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, surroundings="conv_position")
        return params, tensors

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"embedding '{self.name}' expects floating-point samples [B, N], but got "
                f"{inputs.dtype} {list(inputs.shape)}"
            )
        if inputs.shape[1] < self._required_samples(1):
            raise ZooError(
                f"waveforms have {inputs.shape[1]} samples, but one frame needs at least "
                f"{self._required_samples(1)}"
            )
        lengths = _num_samples(inputs)
        states = torch.nan_to_num(inputs, nan=0.0)[:, None]  # [B, C, N]
        for i, convolution in enumerate(self.convolutions):
            states = convolution(states)
            lengths = _num_frames(lengths, *self.steps[i])
            if i < len(self.norms):
                states = self._normalize(states, lengths, self.norms[i])
            states = F.gelu(states)
        frames = states.transpose(1, 2)  # [B, S, C]
        vectors: Tensor = self.map(frames if self.last_norm is None else self.last_norm(frames))
        padding_mask = ~length_mask(lengths, vectors.shape[1])[..., None]
        vectors = vectors.masked_fill(padding_mask, 0.0)
        if self.surroundings is None:
            return vectors
        positioned: Tensor = self.surroundings(vectors)
        return positioned.masked_fill(padding_mask, 0.0)

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "L"), "float", pad=math.nan, min_length=self._required_samples(1))

    def mask(self, inputs: Tensor) -> Tensor:
        lengths, max_length = _num_samples(inputs), inputs.shape[1]
        for kernel, stride in self.steps:
            lengths = _num_frames(lengths, kernel, stride)
            max_length = (max_length - kernel) // stride + 1
        return length_mask(lengths, max_length)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = self.map.weight
        device = generator.device if generator else weight.device
        shape = (batch, self._required_samples(length))
        return torch.randn(shape, generator=generator, device=device).to(weight)

    def _normalize(self, states: Tensor, lengths: Tensor, norm: nn.Module) -> Tensor:
        """Normalise states [B, C, S], each channel over the frames or each frame on its own."""
        if self.norm == "group":
            normalized: Tensor = norm(states, lengths)
        else:
            normalized = norm(states.transpose(1, 2)).transpose(1, 2)
        return normalized

    def _required_samples(self, frames: int) -> int:
        """Return the number of samples needed for a number of frames."""
        for kernel, stride in reversed(self.steps):
            frames = (frames - 1) * stride + kernel
        return frames


def _num_samples(samples: Tensor) -> Tensor:
    """Count the samples of each item that are not padding: [B]."""
    return (~samples.isnan()).sum(dim=1)


def _num_frames(lengths: Tensor, kernel: int, stride: int) -> Tensor:
    return ((lengths - kernel).div(stride, rounding_mode="floor") + 1).clamp(min=0)
