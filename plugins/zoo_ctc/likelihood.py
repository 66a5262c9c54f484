"""The forward-backward algorithm: how likely a labelling is, with its exact gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from zoo_ctc.lattice import IMPOSSIBLE, Lattice


def likelihood(logprobs: Tensor, mask: Tensor, lattice: Lattice) -> Tensor:
    """Log-probability [B] of each labelling, over all its paths; -inf where it has none.

    Shapes:
        logprobs [B, T, V]; mask [B, T], True where a frame is real. A labelling of no paths
        passes no gradient.
    """
    apply: Callable[..., Tensor] = _Likelihood.apply
    return apply(logprobs, mask, lattice.labels, lattice.leaps, lattice.ends)


class _Likelihood(torch.autograd.Function):
    """Every frame's variables are kept near 0, their common size apart, so that float32 does."""

    @staticmethod
    def forward(
        ctx: Any, logprobs: Tensor, mask: Tensor, labels: Tensor, leaps: Tensor, ends: Tensor
    ) -> Tensor:
        lattice = Lattice(labels, leaps, ends)
        emitted = lattice.emitted(logprobs)
        alpha = lattice.start(logprobs)
        size = torch.zeros_like(alpha[:, :1])
        alphas = [alpha]
        for t in range(logprobs.shape[1]):
            moved = lattice.arriving(alpha).logsumexp(dim=0) + emitted[:, t]
            moved, common = _centred(moved)
            real = mask[:, t, None]
            alpha = torch.where(real, moved, alpha)
            size = torch.where(real, size + common, size)
            alphas.append(alpha)
        total = alpha.masked_fill(~ends, IMPOSSIBLE).logsumexp(dim=1) + size[:, 0]
        ctx.save_for_backward(torch.stack(alphas), emitted, total, mask, labels, leaps, ends)
        ctx.vocab = logprobs.shape[2]
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        alphas, emitted, total, mask, labels, leaps, ends = ctx.saved_tensors
        lattice = Lattice(labels, leaps, ends)
        beta = torch.zeros_like(alphas[0]).masked_fill(~ends, IMPOSSIBLE)
        possible = (total > IMPOSSIBLE)[:, None]  # [B, 1]
        B, T, L = emitted.shape
        shares = []
        for t in range(T - 1, -1, -1):
            real = mask[:, t, None]
            # At every frame, the products of alpha and beta over all states sum to the total.
            share = (alphas[t + 1] + beta).softmax(dim=1)
            shares.append(share.masked_fill(~(real & possible), 0.0))
            moved, _ = _centred(lattice.leaving(beta + emitted[:, t]).logsumexp(dim=0))
            beta = torch.where(real, moved, beta)
        share = torch.stack(shares[::-1], dim=1) if T else emitted  # [B, T, L]
        gradient = emitted.new_zeros(B, T, ctx.vocab)
        gradient = gradient.scatter_add(2, labels[:, None].expand(B, T, L), share)
        return gradient * given[:, None, None], None, None, None, None


def _centred(values: Tensor) -> tuple[Tensor, Tensor]:
    """values [B, L] less the largest of each row, and that [B, 1]; as they are if all are -inf."""
    largest = values.amax(dim=1, keepdim=True)
    largest = torch.where(largest > IMPOSSIBLE, largest, torch.zeros_like(largest))
    return values - largest, largest
