"""Rotation of the pairs of each head in one Triton kernel.

Notation: B batch, H heads, T positions, D width of a head, d rotated width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_MAX_HEADS = 16
"""Heads that a program rotates together."""


def rotate(states: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """Rotate pairs of the first d dimensions: states [B, H, T, D]; cos, sin [T, d / 2].

    The result has the layout [B, T, H, D] in memory, as the output of a projection. It is computed
    in float32, and can be differentiated twice.
    """
    rotated: Tensor = _Rotate.apply(states, cos, sin, interleaved, 1.0)  # type: ignore[no-untyped-call]
    return rotated


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, direction: float
    ) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.interleaved, ctx.direction = interleaved, direction
        B, H, T, D = states.shape
        out = states.new_empty(B, T, H, D).transpose(1, 2)
        pairs = cos.shape[1]
        heads = min(_MAX_HEADS, triton.next_power_of_2(H))
        _rotate[(B * T, triton.cdiv(H, heads))](
            *(states, cos.contiguous(), sin.contiguous(), out, H, T, D, pairs, direction),
            *states.stride(),
            INTERLEAVED=interleaved,
            HEADS=heads,
            PAIRS=triton.next_power_of_2(pairs),
            REST=triton.next_power_of_2(D - 2 * pairs) if 2 * pairs < D else 0,
            num_warps=4,
        )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Rotate the gradient by the same angles in the other direction."""
        cos, sin = ctx.saved_tensors
        back = _Rotate.apply(grad, cos, sin, ctx.interleaved, -ctx.direction)  # type: ignore[no-untyped-call]
        return back, None, None, None, None


@triton.jit
def _rotate(
    states_ptr, cos_ptr, sin_ptr, out_ptr, H, T, D, pairs, direction,
    stride_b, stride_h, stride_t, stride_d,
    INTERLEAVED: tl.constexpr, HEADS: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    t = row % T
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    pair = tl.arange(0, PAIRS)
    known = pair < pairs
    inside = (head[:, None] < H) & known[None]
    if INTERLEAVED:
        first, second = 2 * pair, 2 * pair + 1
    else:
        first, second = pair, pair + pairs
    cos = tl.load(cos_ptr + t * pairs + pair, mask=known, other=0.0).to(tl.float32)[None]
    sin = tl.load(sin_ptr + t * pairs + pair, mask=known, other=0.0).to(tl.float32)[None]
    sin *= direction
    source = states_ptr + (row // T) * stride_b + head[:, None] * stride_h + t * stride_t
    target = out_ptr + (row * H + head[:, None]) * D
    x = tl.load(source + first[None] * stride_d, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(source + second[None] * stride_d, mask=inside, other=0.0).to(tl.float32)
    tl.store(target + first[None], x * cos - y * sin, mask=inside)
    tl.store(target + second[None], x * sin + y * cos, mask=inside)
    if REST > 0:
        other = 2 * pairs + tl.arange(0, REST)
        inside = (head[:, None] < H) & (other[None] < D)
        kept = tl.load(source + other[None] * stride_d, mask=inside, other=0.0)
        tl.store(target + other[None], kept, mask=inside)
