"""The forward-backward algorithm of CTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from zoo_ctc.lattice import NEG_INF, Lattice


def likelihood(logprobs: Tensor, mask: Tensor, lattice: Lattice) -> Tensor:
    """Compute the log-probability [B] of the labels, summed over all paths.

    It is -inf, with zero gradient, for an item without a path.

    Shapes:
        logprobs [B, T, V]; mask [B, T], True for valid frames.
    """
    apply: Callable[..., Tensor] = _Likelihood.apply
    return apply(logprobs, mask, lattice.labels, lattice.can_skip, lattice.is_final)


class _Likelihood(torch.autograd.Function):
    """Forward and backward recursions, rescaled at every frame so that float32 is sufficient."""

    @staticmethod
    def forward(
        ctx: Any, logprobs: Tensor, mask: Tensor, labels: Tensor, can_skip: Tensor, is_final: Tensor
    ) -> Tensor:
        lattice = Lattice(labels, can_skip, is_final)
        emissions = lattice.emissions(logprobs)
        alpha = lattice.start(logprobs)
        log_scale = torch.zeros_like(alpha[:, :1])
        alphas = [alpha]
        for t in range(logprobs.shape[1]):
            updated = lattice.incoming(alpha).logsumexp(dim=0) + emissions[:, t]
            updated, shift = _subtract_max(updated)
            valid = mask[:, t, None]
            alpha = torch.where(valid, updated, alpha)
            log_scale = torch.where(valid, log_scale + shift, log_scale)
            alphas.append(alpha)
        total = alpha.masked_fill(~is_final, NEG_INF).logsumexp(dim=1) + log_scale[:, 0]
        ctx.save_for_backward(
            torch.stack(alphas), emissions, total, mask, labels, can_skip, is_final
        )
        ctx.vocab = logprobs.shape[2]
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        alphas, emissions, total, mask, labels, can_skip, is_final = ctx.saved_tensors
        lattice = Lattice(labels, can_skip, is_final)
        beta = torch.zeros_like(alphas[0]).masked_fill(~is_final, NEG_INF)
        possible = (total > NEG_INF)[:, None]  # [B, 1]
        B, T, L = emissions.shape
        posteriors = []
        for t in range(T - 1, -1, -1):
            valid = mask[:, t, None]
            # At every frame, alpha * beta summed over the states is the total probability.
            posterior = (alphas[t + 1] + beta).softmax(dim=1)
            posteriors.append(posterior.masked_fill(~(valid & possible), 0.0))
            updated, _ = _subtract_max(lattice.outgoing(beta + emissions[:, t]).logsumexp(dim=0))
            beta = torch.where(valid, updated, beta)
        posterior = torch.stack(posteriors[::-1], dim=1) if T else emissions  # [B, T, L]
        gradient = emissions.new_zeros(B, T, ctx.vocab)
        gradient = gradient.scatter_add(2, labels[:, None].expand(B, T, L), posterior)
        return gradient * grad_output[:, None, None], None, None, None, None


def _subtract_max(values: Tensor) -> tuple[Tensor, Tensor]:
    """Subtract the maximum of each row of values [B, L], or 0 if all are -inf; return both."""
    largest = values.amax(dim=1, keepdim=True)
    largest = torch.where(largest > NEG_INF, largest, torch.zeros_like(largest))
    return values - largest, largest
