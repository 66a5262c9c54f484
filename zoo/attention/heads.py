"""Heads of queries, keys and values.

Notation: B batch, S positions, H heads, D width of a head.
"""

from __future__ import annotations

from torch import Tensor

from zoo.interfaces import Position


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
