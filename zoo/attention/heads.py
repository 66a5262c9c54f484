"""Heads of queries, keys and values: layers, splitting and merging, norms.

Notation: B batch, S positions, H heads, D width of a head.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.interfaces import Position, full_precision


def split_heads(states: Tensor, heads: int) -> Tensor:
    """Split the width into heads: [B, S, H * D] -> [B, H, S, D]."""
    B, S, _ = states.shape
    return states.view(B, S, heads, -1).transpose(1, 2)


def repeat_heads(states: Tensor, heads: int) -> Tensor:
    """Repeat each head of keys or values for its query heads: [B, Hkv, S, D] -> [B, heads, S, D].

    Returns the states themselves if there are already as many heads.
    """
    repeats = heads // states.shape[1]
    return states if repeats == 1 else states.repeat_interleave(repeats, dim=1)


def rotate_heads(states: Tensor, position: Position | None, offset: int | Tensor) -> Tensor:
    """Rotate queries or keys [B, H, S, D], whose first position is the offset, if it is rotary."""
    if position is None or not position.is_rotary:
        return states
    rotated: Tensor = position("rotate", states, offset=offset)
    return rotated


def merge_heads(context: Tensor, how: str) -> Tensor:
    """Concatenate or average the heads: [B, H, T, D] -> [B, T, H * D] or [B, T, D]."""
    return context.transpose(1, 2).flatten(2) if how == "concat" else context.mean(dim=1)


class Linear(nn.Linear):
    """A `torch.nn.Linear` that can be created on the meta device without initialisation."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:  # no values to initialise
            super().reset_parameters()


class QueryKeyNorm:
    """Kind and width of the norms of projected queries and keys; builds the modules.

    The norms are applied before queries and keys are rotated (Dehghani et al. 2023, section 2).

    Args:
        kind: 'rms' for RMSNorm, 'layer' for LayerNorm, 'rms-plus-one' for RMSNorm with the weights
            1 + w (Gemma 3).
        over: 'head' normalises each head, with the same weights for all heads; 'all' normalises
            all heads together.
        eps: added to the variance or the mean square.
    """

    def __init__(
        self,
        *,
        kind: Literal["rms", "layer", "rms-plus-one"] = "rms",
        over: Literal["head", "all"] = "head",
        eps: Annotated[float, Field(gt=0)] = 1e-6,
    ) -> None:
        self.kind, self.over, self.eps = kind, over, eps

    def build(self, heads: int, head_dim: int) -> nn.Module:
        """Build the norm of queries, or of keys, with this number of heads."""
        width = head_dim if self.over == "head" else heads * head_dim
        return _KINDS[self.kind](width, eps=self.eps)


class OffsetRMSNorm(nn.RMSNorm):
    """RMSNorm with the weights 1 + w; it is computed in float32 and rounded once."""

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        normed = F.rms_norm(full_precision(x), self.normalized_shape, eps=self.eps)
        return (normed * (1 + full_precision(self.weight))).to(x.dtype)


_KINDS: dict[str, type[nn.RMSNorm | nn.LayerNorm]] = {
    "rms": nn.RMSNorm,
    "layer": nn.LayerNorm,
    "rms-plus-one": OffsetRMSNorm,
}


def norm_heads(states: Tensor, norm: nn.Module | None) -> Tensor:
    """Normalise queries or keys [B, H, S, D]: each head, or all heads if the norm is wider."""
    if norm is None:
        return states
    assert isinstance(norm.weight, Tensor)
    if len(norm.weight) == states.shape[-1]:
        each: Tensor = norm(states)
        return each
    merged = norm(states.transpose(1, 2).flatten(2))  # [B, S, H * D]
    together: Tensor = merged.unflatten(2, (states.shape[1], -1)).transpose(1, 2)
    return together
