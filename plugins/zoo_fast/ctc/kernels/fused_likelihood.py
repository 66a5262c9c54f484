"""The log-likelihood of CTC and its gradient in Triton kernels."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from zoo_fast.ctc.eager_gradient import apply_with_gradient
from zoo_fast.ctc.kernels import rows
from zoo_fast.ctc.kernels.combine import combine
from zoo_fast.ctc.kernels.recursion import recursion

MAX_STATES_PER_THREAD = 8


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
    frames, labels = (m.contiguous().view(torch.uint8) for m in (mask, target_mask))
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
    LANES, K = _layout(U + 1)
    new = functools.partial(torch.empty, dtype=torch.float32, device=logits.device)
    lse, middle = new((B, T)), new((B, 2, 4, K, LANES))
    totals, exponents = new((B,)), new((B, 2))
    states = new((B, T, K, LANES) if needs_gradient else (0,))
    bases = new((B, T) if needs_gradient else (0,))
    index, counts = new((B, T), dtype=torch.int32), new((B,), dtype=torch.int32)
    rows.index_frames[(B,)](mask, index, counts, T, BLOCK=min(_power_of_2(T), 1024))
    block_v = min(_power_of_2(V), 1024)
    block_rows = max(1, 2048 // block_v)
    rows.log_sum_exp[(_cdiv(B * T, block_rows),)](
        logits, lse, B * T, T, V, *logits.stride(), ROWS=block_rows, BLOCK=block_v, num_warps=4
    )
    sizes = (T, V, U, blank, *logits.stride())
    lattice = (logits, lse, index, counts, targets, target_mask)

    def recur(second: bool) -> None:
        outputs = (states, bases, middle, exponents)
        recursion[(B, 2)](
            *lattice,
            *outputs,
            *sizes,
            SECOND=second,
            STORE=needs_gradient,
            LANES=LANES,
            K=K,
            num_warps=LANES // 32,
            num_stages=1,
        )

    recur(second=False)
    block_u = _power_of_2(U + 1)
    combine[(B,)](*lattice, middle, totals, exponents, *sizes, LANES=LANES, K=K, BLOCK=block_u)
    if not needs_gradient:
        return totals, None
    recur(second=True)
    output = new((B, T, V))
    rows.gradient[(B * T,)](
        logits,
        lse,
        mask,
        targets,
        target_mask,
        states,
        totals,
        output,
        *sizes,
        LANES=LANES,
        K=K,
        BLOCK_U=block_u,
        BLOCK_V=block_v,
        num_warps=2,
    )
    return totals, output


def _layout(states: int) -> tuple[int, int]:
    """Return the number of threads, at most 1024, and the states per thread."""
    lanes = _power_of_2(_cdiv(states, MAX_STATES_PER_THREAD))
    lanes = min(max(lanes, 32), 1024)
    return lanes, _cdiv(states, lanes)


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _power_of_2(n: int) -> int:
    """Return the least power of 2 that is at least n; triton's own function is slow on the host."""
    return 1 << (n - 1).bit_length()
