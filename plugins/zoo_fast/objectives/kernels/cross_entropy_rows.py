"""Losses and gradients of rows of logits, in one Triton kernel."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_MAX_BLOCK = 4096
_LARGE = tl.constexpr(1e30)


def cross_entropy_rows(
    logits: Tensor, V: int, targets: Tensor, scale: Tensor, losses: Tensor, smoothing: float
) -> None:
    """Write the scaled losses, and replace the logits by the gradient of the sum of the losses.

    The loss of a target that is not in [0, V) is NaN.

    Args:
        V: number of logits of a row; further ones are padding, whose gradient is 0.

    Shapes:
        logits [N, P >= V], contiguous; targets, scale, losses [N].
    """
    N, padded = logits.shape
    if N == 0:
        return
    block = min(triton.next_power_of_2(padded), _MAX_BLOCK)
    _rows[(N,)](
        logits,
        targets.contiguous(),
        scale,
        losses,
        V,
        padded,
        smoothing,
        BLOCK=block,
        SINGLE=block >= padded,
        SMOOTHED=smoothing > 0,
        num_warps=max(1, block // 512),
    )


@triton.jit
def _online_softmax(start, V, BLOCK: tl.constexpr):
    """Return the highest logit of a row, and the sum of the exponentials of differences to it."""
    highest = -float("inf")
    total = 0.0
    for first in range(0, V, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(start + at, mask=at < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(x))
        shift = tl.where(new == -float("inf"), 0.0, new)  # -inf - -inf is NaN
        total = total * tl.exp(highest - shift) + tl.sum(tl.exp(x - shift))
        highest = new
    return highest, total


@triton.jit
def _rows(
    logits_ptr,
    targets_ptr,
    scale_ptr,
    losses_ptr,
    V,
    padded,
    smoothing,
    BLOCK: tl.constexpr,
    SINGLE: tl.constexpr,
    SMOOTHED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(scale_ptr + row).to(tl.float32)
    target = tl.load(targets_ptr + row)
    start = logits_ptr + row * padded
    at = tl.arange(0, BLOCK)
    even = smoothing / V
    in_vocabulary = (target >= 0) & (target < V)
    if scale == 0:
        for first in range(0, padded, BLOCK):
            tl.store(start + first + at, tl.zeros((BLOCK,), tl.float32), mask=first + at < padded)
        tl.store(losses_ptr + row, 0.0)
    else:
        if SINGLE:
            x = tl.load(start + at, mask=at < V, other=-float("inf")).to(tl.float32)
            highest = tl.max(x)
            exponentials = tl.exp(x - highest)
            total = tl.sum(exponentials)
            summed = tl.sum(tl.where(at < V, x, 0.0))
            picked = tl.sum(tl.where(at == target, x, 0.0))
            picked = tl.where(in_vocabulary, picked, float("nan"))
            hit = tl.where(at == target, 1 - smoothing, 0.0)
            gradient = (exponentials / total - even - hit) * scale
            tl.store(start + at, tl.where(at < V, gradient, 0.0), mask=at < padded)
        else:
            x = tl.load(start + at, mask=at < V, other=-float("inf")).to(tl.float32)
            highest = tl.max(x)
            highest = tl.where(highest == -float("inf"), -_LARGE, highest)
            totals = tl.exp(x - highest)
            sums = tl.where(at < V, x, 0.0)
            for first in range(BLOCK, V, BLOCK):
                valid = first + at < V
                x = tl.load(start + first + at, mask=valid, other=-float("inf")).to(tl.float32)
                totals += tl.exp(tl.minimum(x - highest, 80.0))
                sums += tl.where(valid, x, 0.0)
            total, summed = tl.sum(totals), tl.sum(sums)
            picked = tl.load(start + target, mask=in_vocabulary, other=float("nan")).to(tl.float32)
            if not (total < _LARGE):  # the highest logit is not in the first block
                highest, total = _online_softmax(start, V, BLOCK)
            tl.debug_barrier()
            for first in range(0, padded, BLOCK):
                valid = first + at < V
                x = tl.load(start + first + at, mask=valid, other=-float("inf")).to(tl.float32)
                hit = tl.where(first + at == target, 1 - smoothing, 0.0)
                gradient = (tl.exp(x - highest) / total - even - hit) * scale
                gradient = tl.where(valid, gradient, 0.0)
                tl.store(start + first + at, gradient, mask=first + at < padded)
        lse = highest + tl.log(total)
        loss = lse - (1 - smoothing) * picked
        if SMOOTHED:  # 0 * -inf is NaN
            loss -= even * summed
        tl.store(losses_ptr + row, loss * scale)
