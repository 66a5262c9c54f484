"""The blocks of a Transformer decoder for few tokens, in Triton kernels.

Notation: R rows (tokens of hypotheses or of short prompts), W rows per source, D width, H heads.
"""

from typing import NamedTuple

import torch
import triton
from torch import Tensor, nn

from zoo.plugin import Attention
from zoo_fast.device.triton_support import dependent_launch, shared_memory
from zoo_fast.transformer.cached_state import SLOTS, CachedState
from zoo_fast.transformer.kernels import attention_triton
from zoo_fast.transformer.kernels.linear_layers import (
    ACTIVATIONS,
    LayerInput,
    PartialSums,
    add_and_norm,
    linear,
    normed_input,
    partial_linear,
    project_heads,
    tokens_per_cache,
)
from zoo_fast.transformer.kernels.tiles import attention_tiles, fit_attention, norm_first
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward


class _Rows(NamedTuple):
    """Rows [R, D] and the norm that is still to be applied to them.

    Attributes:
        sums: what is to be added to get the rows; ``x`` is not used then.
    """

    x: Tensor
    norm: nn.Module | None
    sums: PartialSums | None = None


def run_blocks(
    x: Tensor,
    state: CachedState,
    blocks: list[Block],
    *,
    interleaved: bool,
    final_norm: nn.Module | None,
    matrix: Tensor | None,
    last: Tensor | None = None,
) -> Tensor:
    """Process embedded tokens [R, D] at the positions "at" of the state, and update the caches.

    Args:
        interleaved: whether angles rotate dimensions (2i, 2i + 1), not (i, i + d/2).
        matrix: [V, D] of the output, if its logits are to be computed.
        last: the row [B] of the last token of each of the B caches, if others follow it.

    Returns the logits [B, V] of the last token of each cache, or without a matrix the
    states [B, D] after the final norm.
    """
    rows = _Rows(x, None)
    for index, block in enumerate(blocks):
        rows = _self_attention(rows, state, block, index, interleaved=interleaved)
        if block.memory_dim:
            rows = _cross_attention(rows, state, block, index)
        rows = _feed_forward(rows, block, is_last=index == len(blocks) - 1)
    tokens = tokens_per_cache(x, state)
    selected = rows.x[tokens - 1 :: tokens] if last is None else rows.x.index_select(0, last)
    rows = rows._replace(x=selected)
    if rows.norm is not None and final_norm is not None:
        rows = _Rows(rows.norm(rows.x), None)
    norm = final_norm if rows.norm is None else rows.norm
    if matrix is None:
        states: Tensor = rows.x if norm is None else norm(rows.x)
        return states
    return linear(normed_input(rows.x, norm), matrix)


def _enter(rows: _Rows, block: Block, norm: nn.Module) -> tuple[LayerInput, Tensor]:
    """Return the input of a sublayer and the rows to which its output is added."""
    if rows.sums is not None:
        normed, summed = add_and_norm(rows.sums, norm if rows.norm is None else rows.norm)
        residual = summed if rows.norm is None else normed
        return LayerInput(normed, None, None), residual
    if block.place == "pre":
        return normed_input(rows.x, norm), rows.x
    if rows.norm is None:
        return LayerInput(rows.x, None, None), rows.x
    if norm_first(len(rows.x), rows.x.shape[1], rows.x.dtype):
        sublayer = normed_input(rows.x, rows.norm)
        return sublayer, sublayer.x
    normed = torch.empty_like(rows.x)
    return LayerInput(rows.x, rows.norm, normed), normed


def _self_attention(
    rows: _Rows, state: CachedState, block: Block, index: int, *, interleaved: bool
) -> _Rows:
    attention, norm = block.attention, block.attention_norm
    sublayer, residual = _enter(rows, block, norm)
    queries = project_heads(sublayer, state, attention, index, interleaved=interleaved)
    keys, values = state.history[f"{index}.keys"], state.history[f"{index}.values"]
    context = _attend(attention, queries, keys, values, state, cached=True)
    return _leave(context, attention.out, residual, block, norm)


def _cross_attention(rows: _Rows, state: CachedState, block: Block, index: int) -> _Rows:
    attention, norm = block.cross, block.cross_norm
    sublayer, residual = _enter(rows, block, norm)
    queries = linear(sublayer, attention.query)
    queries = queries.view(-1, attention.heads, attention.head_dim)
    keys, values = state.shared[f"{index}.keys"], state.shared[f"{index}.values"]
    context = _attend(attention, queries, keys, values, state, cached=False)
    return _leave(context, attention.out, residual, block, norm)


def _feed_forward(rows: _Rows, block: Block, *, is_last: bool) -> _Rows:
    network: FeedForward = block.feed_forward
    assert block.feed_forward_norm is not None
    sublayer, residual = _enter(rows, block, block.feed_forward_norm)
    activation = ACTIVATIONS[network.activation]
    hidden = linear(sublayer, network.up, activation=activation, gate=network.gate)
    return _leave(hidden, network.down, residual, block, block.feed_forward_norm, is_last=is_last)


def _leave(
    x: Tensor,
    layer: nn.Linear,
    residual: Tensor,
    block: Block,
    norm: nn.Module,
    *,
    is_last: bool = False,
) -> _Rows:
    """Return the rows after a sublayer.

    Args:
        layer: its last layer.
        norm: its norm.
        is_last: whether the sublayer is the last one.
    """
    after = None if block.place == "pre" else norm
    sums = None if is_last else partial_linear(x, layer, residual)
    if sums is not None:
        return _Rows(residual, after, sums)
    return _Rows(linear(LayerInput(x, None, None), layer, residual), after)


def _attend(
    attention: Attention,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    state: CachedState,
    *,
    cached: bool,
) -> Tensor:
    """Attend to the cache of the previous positions or to the source: [R, H, D] -> [R, H * D]."""
    R, H, D = queries.shape
    S, groups = keys.shape[2], keys.shape[1]
    slots, mask = state.rows[SLOTS], state.shared["mask"]
    W = R // len(mask)
    tokens = tokens_per_cache(queries, state)
    tiles = attention_tiles(R, groups, H // groups, S, D, dtype=queries.dtype, cached=cached)
    width = triton.next_power_of_2(D)
    tiles = fit_attention(tiles, width, queries.dtype, shared_memory(queries.device))
    splits = tiles["SPLITS"]
    context = torch.empty_like(queries)
    partial = queries.new_empty(R, H, splits, D, dtype=torch.float32) if splits > 1 else context
    lse = queries.new_empty(R, H, splits, dtype=torch.float32) if splits > 1 else context
    attention_triton.attend[(R, H // tiles["G"], splits)](
        queries,
        keys,
        values,
        state.rows["at"],
        slots,
        mask.contiguous().view(torch.uint8),
        partial,
        lse,
        S=S,
        W=W,
        scale=attention.scorers.first.scale,
        **dict(zip(("key_b", "key_h", "key_s"), keys.stride(), strict=False)),
        **dict(zip(("value_b", "value_h", "value_s"), values.stride(), strict=False)),
        D=D,
        TOKENS=tokens,
        CACHED=cached,
        SLOTS=cached and tokens < W,
        MASKED=not cached,
        BD=width,
        **tiles,
        **dependent_launch(queries),
    )
    if splits > 1:
        attention_triton.combine[(R * H,)](
            partial,
            lse,
            context,
            D=D,
            SPLITS=splits,
            BD=width,
            BP=triton.next_power_of_2(splits),
            **dependent_launch(queries),
        )
    return context.view(R, H * D)
