"""The log-likelihood of CTC and its gradient in Triton kernels."""

from __future__ import annotations

import functools

import torch
import triton
from torch import Tensor

from zoo_ctc.eager_gradient import apply_with_gradient
from zoo_ctc.kernels import recursion


def fused_likelihood(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int
) -> Tensor:
    """Compute the log-probability [B] of the labels from logits, as `likelihood` does.

    The gradient is computed in the same pass if the logits need it. Extra memory: [B, T, U] for
    the pass and [B, T, V] for the gradient, in float32.

    Shapes:
        logits [B, T, V], not empty; mask [B, T], True for valid frames; targets, target_mask
        [B, U].
    """
    frames, labels = mask.contiguous().to(torch.uint8), target_mask.contiguous().to(torch.uint8)
    targets = targets.contiguous()

    def compute(logits: Tensor, needs_gradient: bool) -> tuple[Tensor, Tensor | None]:
        return _compute(logits, frames, targets, labels, blank, needs_gradient)

    return apply_with_gradient(compute, logits)


def _compute(
    logits: Tensor,
    mask: Tensor,
    targets: Tensor,
    target_mask: Tensor,
    blank: int,
    needs_gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return the log-likelihood [B] and its gradient [B, T, V], None if it is not needed."""
    B, T, V = logits.shape
    U = targets.shape[1]
    new = functools.partial(torch.empty, dtype=torch.float32, device=logits.device)
    block_u, block_v = triton.next_power_of_2(U + 1), min(triton.next_power_of_2(V), 1024)
    lse, middle, totals = new((B, T)), new((B, 2, 8, block_u)), new((B,))
    states = new((B, T, U) if needs_gradient else (0,))
    bases = new((B, T) if needs_gradient else (0,))
    sizes = (T, V, U, blank, *logits.stride())
    recursion.log_sum_exp[(B * T,)](
        logits, lse, T, V, *logits.stride(), BLOCK=block_v, num_warps=_num_warps(block_v)
    )
    for second in (False, True):
        recursion.recursion[(B, 2)](
            logits,
            lse,
            mask,
            targets,
            target_mask,
            states,
            bases,
            middle,
            totals,
            *sizes,
            SECOND=second,
            STORE=needs_gradient,
            BLOCK=block_u,
            num_warps=_num_warps(block_u),
        )
    if not needs_gradient:
        return totals, None
    output = new((B, T, V))
    recursion.gradient[(B * T,)](
        logits,
        lse,
        mask,
        targets,
        target_mask,
        states,
        totals,
        output,
        *sizes,
        BLOCK_U=block_u,
        BLOCK_V=block_v,
        num_warps=2,
    )
    return totals, output


def _num_warps(block: int) -> int:
    """Return the number of warps with two to four elements of the block per thread."""
    return max(1, min(block // 64, 8))
