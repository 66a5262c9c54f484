"""The bias of a position on the scores of an attention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from zoo.attention.heads import repeat_heads
from zoo.errors import ZooError
from zoo.interfaces import Mask, Position

if TYPE_CHECKING:
    from zoo.attention.attention import Attention


def add_position_bias(
    attention: Attention,
    mask: Mask | None,
    position: Position | None,
    query: Tensor,
    queries: Tensor,
    keys: Tensor,
    offset: int | Tensor,
) -> Mask:
    """Return the mask with the bias of the position, unless it already has it, and the bias that
    depends on the content of queries and keys.

    Args:
        query: the inputs of the queries [B, T, D].
        queries: queries of each head [B, H, T, d].
        keys: keys [B, Hkv, S, d].
    """
    mask = mask or Mask()
    if position is None:
        return mask
    if position.has_bias and mask.bias is None:
        mask = replace(mask, bias=position("bias", queries, keys, offset=offset))
    if not position.has_score_bias:
        return mask
    if attention.score_bias is None:
        raise ZooError(
            f"position '{position.name}' has a bias in each attention; call "
            "attention.set_position(position) once before"
        )
    keys = repeat_heads(keys, attention.heads)
    bias = attention.score_bias(attention, position, query, queries, keys, offset=offset)
    return replace(mask, bias=bias if mask.bias is None else mask.bias + bias)
