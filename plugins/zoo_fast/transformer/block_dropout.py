"""Conditions of kernels that compute Transformer blocks without dropout."""

from __future__ import annotations

from zoo_fast.active_dropout import active_p
from zoo_fast.attention.softmax_dropout import softmax_dropout
from zoo_transformer.block import Block


def why_not_block_dropout(block: Block) -> str | None:
    """Return why a block is not computed without dropout, or None if it is."""
    attentions = (block.attention, *((block.cross,) if block.memory_dim else ()))
    if active_p(block.dropout) or any(softmax_dropout(each.align) for each in attentions):
        return "a dropout layer is in training mode"
    return None
