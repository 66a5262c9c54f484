"""Group normalisation over the valid frames of a padded batch."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision


class MaskedGroupNorm(nn.Module):
    """Group normalisation with one group per channel that ignores padding.

    Mean and variance are computed in float32 or higher over the first ``lengths`` frames.

    Args:
        channels: number of channels.
        eps: added to the variance.

    Shapes:
        states [B, channels, S], lengths [B] -> [B, channels, S].
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weight": "norm", "bias": "norm"}

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.channels = channels
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return f"{self.channels}, eps={self.eps}"

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        x = full_precision(states)
        valid = length_mask(lengths, states.shape[2])[:, None]
        count = lengths.clamp(min=1)[:, None, None]
        mean = (x * valid).sum(dim=2, keepdim=True) / count
        variance = ((x - mean).square() * valid).sum(dim=2, keepdim=True) / count
        normalized = ((x - mean) * torch.rsqrt(variance + self.eps)).to(states.dtype)
        return normalized * self.weight[:, None] + self.bias[:, None]


def length_mask(lengths: Tensor, max_length: int) -> Tensor:
    """Return a mask [B, max_length] that is True before each length."""
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]
