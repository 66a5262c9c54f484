"""The blocks of a Transformer decoder for few tokens, in Triton kernels.

Notation: R rows (tokens of hypotheses or of short prompts), W rows per source, D width, H heads.
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor, nn

from zoo.plugin import Attention
from zoo_fast.device.triton_support import dependent_launch, shared_memory
from zoo_fast.transformer.cached_state import SLOTS, CachedState
from zoo_fast.transformer.kernels import attention_triton, decoding_linear_triton, norm_triton
from zoo_fast.transformer.kernels.tiles import (
    attention_tiles,
    fit_stages,
    linear_tiles,
    norm_first,
)
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward

MAX_OUTPUT_ROWS = 64
"""With more rows, the library's product of the output layer is faster."""
_ACTIVATIONS = {"relu": 1, "silu": 2, "gelu": 3, "gelu-tanh": 4}


class _Rows(NamedTuple):
    """Rows [R, D] and the norm that is still to be applied to them."""

    x: Tensor
    norm: nn.Module | None


class _Input(NamedTuple):
    """Input of a kernel: rows, the norm before its products, and where the norm's output goes."""

    x: Tensor
    norm: nn.Module | None
    normed: Tensor | None

    def arguments(self) -> dict[str, Any]:
        x, norm = self.x, self.norm
        bias = getattr(norm, "bias", None)
        weight = x if norm is None else norm.weight
        kind = 0 if norm is None else 1 if isinstance(norm, nn.LayerNorm) else 2
        return {
            "x": x,
            "norm_weight": weight,
            "norm_bias": weight if bias is None else bias,
            "normed": x if self.normed is None else self.normed,
            "M": x.shape[0],
            "K": x.shape[1],
            "x_m": x.stride(0),
            "eps": 0.0 if norm is None else norm.eps,
            "NORM": kind,
            "WRITE_NORMED": self.normed is not None,
        }


def run_blocks(
    x: Tensor,
    state: CachedState,
    blocks: list[Block],
    *,
    interleaved: bool,
    final_norm: nn.Module | None,
    matrix: Tensor | None,
) -> Tensor:
    """Process embedded tokens [R, D] at the positions "at" of the state, and update the caches.

    Args:
        interleaved: whether angles rotate dimensions (2i, 2i + 1), not (i, i + d/2).

    Returns the logits [B, V] of the last token of each of the B caches if there are few and the
    matrix [V, D] of the output is known, which then reads its weights at full speed; else the
    states [B, D] after the final norm.
    """
    rows = _Rows(x, None)
    for index, block in enumerate(blocks):
        rows = _self_attention(rows, state, block, index, interleaved=interleaved)
        if block.memory_dim:
            rows = _cross_attention(rows, state, block, index)
        rows = _feed_forward(rows, block)
    tokens = _tokens_per_cache(x, state)
    rows = rows._replace(x=rows.x[tokens - 1 :: tokens])
    if rows.norm is not None and final_norm is not None:
        rows = _Rows(rows.norm(rows.x), None)
    norm = final_norm if rows.norm is None else rows.norm
    if matrix is None or len(rows.x) > MAX_OUTPUT_ROWS:
        states: Tensor = rows.x if norm is None else norm(rows.x)
        return states
    return _linear(_normed(rows.x, norm), matrix)


def _tokens_per_cache(rows: Tensor, state: CachedState) -> int:
    """Return how many rows have the same cache: one, or the tokens of a prompt."""
    return len(rows) // len(state.rows[SLOTS])


def _enter(rows: _Rows, block: Block, norm: nn.Module) -> tuple[_Input, Tensor]:
    """Return the input of a sublayer and the rows to which its output is added."""
    if block.place == "pre":
        return _normed(rows.x, norm), rows.x
    if rows.norm is None:
        return _Input(rows.x, None, None), rows.x
    if norm_first(len(rows.x), rows.x.shape[1], rows.x.dtype):
        sublayer = _normed(rows.x, rows.norm)
        return sublayer, sublayer.x
    normed = torch.empty_like(rows.x)
    return _Input(rows.x, rows.norm, normed), normed


def _normed(x: Tensor, norm: nn.Module | None) -> _Input:
    """Return the input of a kernel after a norm, which the kernel computes unless it is slower."""
    if norm is None or not norm_first(len(x), x.shape[1], x.dtype):
        return _Input(x, norm, None)
    output = torch.empty_like(x)
    arguments = _Input(x, norm, output).arguments()
    names = ("x", "norm_weight", "norm_bias", "K", "x_m", "eps", "NORM")
    norm_triton.norm_rows[(len(x),)](
        output=output,
        BK=triton.next_power_of_2(x.shape[1]),
        **{name: arguments[name] for name in names},
        **dependent_launch(x),
    )
    return _Input(output, None, None)


def _self_attention(
    rows: _Rows, state: CachedState, block: Block, index: int, *, interleaved: bool
) -> _Rows:
    attention, norm = block.attention, block.attention_norm
    sublayer, residual = _enter(rows, block, norm)
    keys, values = state.history[f"{index}.keys"], state.history[f"{index}.values"]
    at = state.rows["at"]
    R, H, D = len(rows.x), attention.heads, attention.head_dim
    queries = rows.x.new_empty(R, H, D)
    rotary = "cos" in state.tables
    cos, sin = (state.tables[name] if rotary else rows.x for name in ("cos", "sin"))
    x, width = sublayer.x, (H + 2 * attention.kv_heads) * D
    tiles = linear_tiles(R, width, x.shape[1], dtype=x.dtype, half_head=D // 2)
    tiles = fit_stages(tiles, 2, shared_memory(x.device))
    row_blocks = triton.cdiv(R, tiles["BM"])
    decoding_linear_triton.project_heads[(width // 2 // tiles["BN"] * row_blocks,)](
        query=attention.query.weight,
        key=attention.key.weight,
        value=attention.value.weight,
        query_bias=_bias(attention.query),
        key_bias=_bias(attention.key),
        value_bias=_bias(attention.value),
        queries=queries,
        keys=keys,
        values=values,
        at=at,
        cos=cos,
        sin=sin,
        S=keys.shape[2],
        TOKENS=_tokens_per_cache(x, state),
        H=H,
        HKV=attention.kv_heads,
        D=D,
        ROTARY=rotary,
        INTERLEAVED=interleaved,
        HAS_BIAS=attention.query.bias is not None,
        HAS_KEY_BIAS=attention.key.bias is not None,
        ROW_BLOCKS=row_blocks,
        **sublayer.arguments(),
        **tiles,
        **dependent_launch(x),
    )
    context = _attend(attention, queries, keys, values, state, cached=True)
    output = _linear(_Input(context, None, None), attention.out, residual)
    return _Rows(output, _after(block, norm))


def _cross_attention(rows: _Rows, state: CachedState, block: Block, index: int) -> _Rows:
    attention, norm = block.cross, block.cross_norm
    sublayer, residual = _enter(rows, block, norm)
    queries = _linear(sublayer, attention.query)
    queries = queries.view(-1, attention.heads, attention.head_dim)
    keys, values = state.shared[f"{index}.keys"], state.shared[f"{index}.values"]
    context = _attend(attention, queries, keys, values, state, cached=False)
    output = _linear(_Input(context, None, None), attention.out, residual)
    return _Rows(output, _after(block, norm))


def _feed_forward(rows: _Rows, block: Block) -> _Rows:
    network: FeedForward = block.feed_forward
    assert block.feed_forward_norm is not None
    sublayer, residual = _enter(rows, block, block.feed_forward_norm)
    activation = _ACTIVATIONS[network.activation]
    down = network.down
    hidden = _linear(sublayer, network.up, activation=activation, gate=network.gate)
    output = _linear(_Input(hidden, None, None), down, residual)
    return _Rows(output, _after(block, block.feed_forward_norm))


def _after(block: Block, norm: nn.Module) -> nn.Module | None:
    return None if block.place == "pre" else norm


def _bias(layer: nn.Linear) -> Tensor:
    """Return the bias, or the weight in its place if there is none."""
    return layer.weight if layer.bias is None else layer.bias


def _linear(
    inputs: _Input,
    layer: nn.Linear | Tensor,
    residual: Tensor | None = None,
    *,
    activation: int = 0,
    gate: nn.Linear | None = None,
) -> Tensor:
    """Compute residual + f(W norm(x) + b), or residual + f(G norm(x)) * (W norm(x)): [R, N]."""
    weight, bias = (layer, None) if isinstance(layer, Tensor) else (layer.weight, layer.bias)
    x, N = inputs.x, len(weight)
    output = x.new_empty(len(x), N)
    tiles = linear_tiles(len(x), N, x.shape[1], dtype=x.dtype, paired=gate is not None)
    tiles = fit_stages(tiles, 1 if gate is None else 2, shared_memory(x.device))
    row_blocks = triton.cdiv(len(x), tiles["BM"])
    decoding_linear_triton.linear[(triton.cdiv(N, tiles["BN"]) * row_blocks,)](
        weight=weight,
        bias=weight if bias is None else bias,
        gate=weight if gate is None else gate.weight,
        gate_bias=weight if gate is None else _bias(gate),
        residual=x if residual is None else residual,
        output=output,
        N=N,
        residual_m=N if residual is None else residual.stride(0),
        ACTIVATION=activation,
        GATED=gate is not None,
        HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None,
        ROW_BLOCKS=row_blocks,
        **inputs.arguments(),
        **tiles,
        **dependent_launch(x),
    )
    return output


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
    tokens = _tokens_per_cache(queries, state)
    tiles = attention_tiles(R, groups, H // groups, S, D, dtype=queries.dtype, cached=cached)
    splits, width = tiles["SPLITS"], triton.next_power_of_2(D)
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
