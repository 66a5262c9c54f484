"""The forward-backward algorithm of CTC on the CPU, vectorised and without logarithms.

Notation: B batch size, T frames, U labels, L = 2U + 1 states, V vocabulary including the blank.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from zoo_ctc.lattice import NEG_INF, Lattice
from zoo_fast.ctc.eager_gradient import apply_with_gradient
from zoo_fast.ctc.scaled_recursion import MAX_SPAN, MIN_SPAN, FloatArray, interval, power, run

_GROUP = 1 << 20  # states of all frames that are computed together


def scaled_likelihood(logits: Tensor, mask: Tensor, lattice: Lattice) -> Tensor | None:
    """Compute the log-probability [B] of the labels from logits, as `likelihood` does.

    Return None if a label of the lattice has a probability below 2^-MAX_SPAN or NaN.

    Shapes:
        logits [B, T, V] with T > 0, float32 or float64; mask [B, T], valid frames first.
    """
    probabilities = logits.detach().softmax(dim=-1)
    emissions = lattice.emissions(probabilities)  # [B, T, L]
    smallest = emissions.masked_fill(~mask[..., None], 1.0).min().item()
    if not smallest >= 2.0**-MAX_SPAN:
        return None
    span = max(MIN_SPAN, math.ceil(-math.log2(smallest)))

    def compute(logits: Tensor, needs_gradient: bool) -> tuple[Tensor, Tensor | None]:
        size = max(1, _GROUP // (emissions.shape[1] * emissions.shape[2]))
        totals = logits.new_empty(len(logits))
        gradient = None
        if needs_gradient:
            gradient = probabilities.neg()
        for i in range(0, len(logits), size):
            part = slice(i, i + size)
            total, posterior = _posteriors(emissions[part], mask[part], lattice, part, span)
            totals[part] = torch.from_numpy(total)
            if gradient is not None:
                index = lattice.labels[part, None].expand_as(emissions[part])
                gradient[part].scatter_add_(2, index, torch.from_numpy(posterior).to(gradient))
        if gradient is not None:
            gradient *= (mask & totals.isfinite()[:, None])[..., None]
        return totals, gradient

    return apply_with_gradient(compute, logits)


def _posteriors(
    emissions: Tensor, mask: Tensor, lattice: Lattice, part: slice, span: int
) -> tuple[FloatArray, FloatArray]:
    """Return the log-likelihood [B] and the posteriors of the states [B, T, L] of some items."""
    B, T, L = emissions.shape
    frames = interval(span)
    C = -(-T // frames)
    # A padding frame has the blank with probability 1, which changes no probability. The items are
    # followed by the same ones with reversed frames and states, which give the backward variables.
    e = np.empty((C * frames, 2 * B, L))
    e[:T, :B] = emissions.numpy().transpose(1, 0, 2)
    e[:T, :B][~mask.T.numpy()] = e[T:, :B] = np.arange(L) % 2 == 0
    e[:, B:] = e[::-1, :B, ::-1]
    can_skip, is_final = lattice.can_skip[part].numpy(), lattice.is_final[part].numpy()
    start, skip = np.zeros((2 * B, L)), np.zeros((2 * B, L), dtype=bool)
    start[:B, :2], start[B:] = 1.0, is_final[:, ::-1]
    skip[:B], skip[B:, 2:] = can_skip, can_skip[:, :1:-1]
    before, after, n = run(e.reshape(C, frames, 2 * B, L), start, skip, span)
    forward, backward = after[:, :, :B], before[::-1, ::-1, B:, ::-1]  # [C, I, B, L]
    n = n[:, :B] + n[::-1, B:, ::-1]  # [C, B, L]
    # A path starts in the first blank or in the first label.
    with np.errstate(divide="ignore"):
        first = np.log2(forward[0, 0, :, :2]) + np.log2(backward[0, 0, :, :2]) + n[0, :, :2]
    bits = np.logaddexp2.reduce(first, axis=1)  # [B]
    whole = np.floor(np.where(bits > NEG_INF, bits, 0.0))
    rest = np.where(bits > NEG_INF, np.exp2(whole - bits), 0.0)
    # Each factor is scaled by about the square root, so that neither overflows.
    n -= whole.astype(np.int64)[:, None]
    half = n >> 1
    posterior = forward * (power(half) * rest[:, None])[:, None]
    posterior *= backward * power(n - half)[:, None]
    return bits * math.log(2), posterior.reshape(-1, B, L)[:T].transpose(1, 0, 2)
