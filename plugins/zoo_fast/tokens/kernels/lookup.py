"""Rows of a table, and the gradient of the table in Triton kernels without sorting the tokens.

Notation: N tokens, V vocabulary, D width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from zoo_fast.device.late_gradients import LateParameters, late_parameters

_CHUNK, _ROWS = 1024, 32


def lookup(tokens: Tensor, table: Tensor, padding: int | None) -> Tensor:
    """Return the rows [..., D] of the table [V, D]; that of the padding receives no gradient.

    The gradients of equal tokens are added in float32 in the order of the tokens, so the result
    does not depend on the order in which programs run.
    """
    late = late_parameters(table, [table])
    rows: Tensor = _Lookup.apply(tokens, table, padding, late)  # type: ignore[no-untyped-call]
    return rows


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tokens: Tensor, table: Tensor, padding: int | None, late: LateParameters | None
    ) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.shape, ctx.padding, ctx.late = table.shape, padding, late
        return F.embedding(tokens, table)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,) = ctx.saved_tensors
        if ctx.late is not None:
            ctx.late.add_in_place(lambda out: add_gradients(tokens, grad, out, ctx.padding))
            return (None,) * 4
        if torch.is_grad_enabled():  # the backward pass is differentiated
            padding = -1 if ctx.padding is None else ctx.padding
            sums = torch.ops.aten.embedding_dense_backward(
                grad, tokens, ctx.shape[0], padding, False
            )
            return None, sums, None, None
        out = torch.zeros(ctx.shape, dtype=grad.dtype, device=grad.device)
        add_gradients(tokens, grad, out, ctx.padding)
        return None, out, None, None


def add_gradients(tokens: Tensor, grad: Tensor, out: Tensor, padding: int | None) -> None:
    """Add the gradients [..., D] of rows of the table to its gradient [V, D]."""
    V, D = out.shape
    tokens, grad = tokens.flatten().contiguous(), grad.contiguous()
    N = len(tokens)
    if N == 0:
        return
    first = torch.full((V,), N, dtype=torch.int32, device=grad.device)
    count = torch.zeros(V, dtype=torch.int32, device=grad.device)
    _find_first[(triton.cdiv(N, 256),)](tokens, first, count, N, BLOCK=256, num_warps=4)
    block = min(triton.next_power_of_2(D), 256)
    _add_rows[(N, triton.cdiv(D, block))](
        *(tokens, first, count, grad, out, N, D, -1 if padding is None else padding),
        BLOCK=block,
        CHUNK=_CHUNK,
        ROWS=_ROWS,
        num_warps=4,
    )


@triton.jit
def _find_first(tokens_ptr, first_ptr, count_ptr, N, BLOCK: tl.constexpr):
    """Find the first position of each token, and its number of positions."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(tokens_ptr + at, mask=at < N, other=0)
    tl.atomic_min(first_ptr + token, at.to(tl.int32), mask=at < N)
    tl.atomic_add(count_ptr + token, tl.full((BLOCK,), 1, tl.int32), mask=at < N)


@triton.jit
def _add_rows(
    tokens_ptr, first_ptr, count_ptr, grad_ptr, out_ptr, N, D, padding,
    BLOCK: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Add the gradients of one token, in the program of its first position."""
    position = tl.program_id(0)
    token = tl.load(tokens_ptr + position)
    if (tl.load(first_ptr + token) == position) & (token != padding):
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        known = column < D
        here = position.to(tl.int64) * D + column
        total = tl.load(grad_ptr + here, mask=known, other=0.0).to(tl.float32)
        left = tl.load(count_ptr + token) - 1
        begin = position + 1
        while left > 0:
            at = begin + tl.arange(0, CHUNK)
            equal = tl.load(tokens_ptr + at, mask=at < N, other=-1) == token
            found = tl.sum(equal.to(tl.int32))
            if found > 0:
                for part in range(begin, begin + CHUNK, ROWS):
                    row = part + tl.arange(0, ROWS)
                    same = tl.load(tokens_ptr + row, mask=row < N, other=-1) == token
                    if tl.max(same.to(tl.int32)) > 0:
                        place = row[:, None].to(tl.int64) * D + column[None]
                        mask = same[:, None] & known[None]
                        rows = tl.load(grad_ptr + place, mask=mask, other=0.0)
                        total += tl.sum(rows.to(tl.float32), axis=0)
            left -= found
            begin += CHUNK
        there = token.to(tl.int64) * D + column
        total += tl.load(out_ptr + there, mask=known, other=0.0).to(tl.float32)
        tl.store(out_ptr + there, total, mask=known)
