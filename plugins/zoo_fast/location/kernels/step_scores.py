"""Location-aware scores of one query in Triton kernels, differentiable.

Notation: B batch, S keys, D hidden width, K filters of width W.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_fast.location.kernels import location_triton

KEYS = 32
"""Number of keys of a program."""
WIDTH = 32
"""Number of hidden units or filter weights that a program processes together."""


def step_scores(
    a: Tensor, b: Tensor, previous: Tensor, filters: Tensor, U: Tensor, w: Tensor
) -> Tensor:
    r"""Compute the scores of one query in a kernel, without a tensor of the hidden layer.

    .. math:: e_s = w^\top \tanh(a + b_s + U f_s), \qquad f = F * \alpha

    Shapes:
        a [B, D], b [B, S, D], previous weights [B, S], filters F [K, W], U [D, K], w [D] -> [B, S].
    """
    apply: Callable[..., Tensor] = _StepScores.apply
    return apply(a, b, previous, filters, U, w)


def formula(
    a: Tensor, b: Tensor, previous: Tensor, filters: Tensor, U: Tensor, w: Tensor
) -> Tensor:
    """Compute the scores in PyTorch operations."""
    f = F.conv1d(previous[:, None], filters[:, None], padding=filters.shape[1] // 2)
    scores: Tensor = (a[:, None] + b + f.transpose(1, 2) @ U.T).tanh() @ w
    return scores


class _StepScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        a, b, previous, filters, U, w = (part.contiguous() for part in inputs)
        (B, S, D), (K, W) = b.shape, filters.shape
        features = torch.empty(B, S, K, dtype=torch.float32, device=b.device)
        scores = features.new_empty(B, S)
        location_triton.forward[(B, -(-S // KEYS))](
            a, b, previous, filters, U, w, features, scores, S, D, K, W // 2, **_blocks(K), WB=WIDTH
        )
        ctx.save_for_backward(*inputs, features)
        return scores.to(b.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, features = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is differentiated
            return _differentiable_gradients(inputs, ctx.needs_input_grad, g)
        a, b, previous, filters, U, w = (part.contiguous() for part in inputs)
        (B, S, D), (K, W) = b.shape, filters.shape
        blocks = -(-S // KEYS)
        grad_b, grad_f = torch.empty_like(b), features.new_empty(B, K, S)
        partial_a, partial_w = (features.new_empty(B, blocks, D) for _ in range(2))
        partial_U, partial_F = (features.new_empty(B, blocks, *x.shape) for x in (U, filters))
        sizes = _blocks(K)
        location_triton.backward[(B, blocks)](
            a, b, previous, U, w, features, g.contiguous(), grad_b, grad_f,
            partial_a, partial_w, partial_U, partial_F, S, D, K, W // 2, **sizes, WB=WIDTH,
        )  # fmt: skip
        grad_previous = None
        if ctx.needs_input_grad[2]:
            grad_previous = torch.empty_like(previous)
            location_triton.backward_previous[(B, blocks)](
                grad_f, filters, grad_previous, S, K, W // 2, SB=KEYS, WB=WIDTH, num_warps=4
            )
        return (
            partial_a.sum(dim=1).to(a.dtype),
            grad_b,
            grad_previous,
            *(
                partial.sum(dim=(0, 1)).to(part.dtype)
                for partial, part in ((partial_F, filters), (partial_U, U), (partial_w, w))
            ),
        )


def _blocks(K: int) -> dict[str, int]:
    """Return the block sizes; products need at least 16 columns."""
    columns = max(16, 1 << (K - 1).bit_length())
    return {"SB": KEYS, "DB": WIDTH, "KB": columns, "num_warps": 4}


def _differentiable_gradients(
    inputs: list[Tensor], needed: tuple[bool, ...], g: Tensor
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of the formula, so that they have gradients themselves."""
    wanted = [part for part, need in zip(inputs, needed, strict=True) if need]
    grads = iter(torch.autograd.grad(formula(*inputs), wanted, g, create_graph=True))
    return tuple(next(grads) if need else None for need in needed)
