"""The forward-backward algorithm of CTC in vectorised float64, without logarithms.

Notation: B batch size, T frames, L = 2U + 1 states, V vocabulary including the blank.

A probability of state s is m * 2^n with a float64 m and an exponent n for each state, which is
updated every few frames. Between two updates, a frame is three operations on all items, in both
directions at once: the backward recursion is the forward one on reversed frames and states.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from zoo_ctc.eager_gradient import apply_with_gradient
from zoo_ctc.lattice import NEG_INF, Lattice

INTERVAL = 4
"""Number of frames between two updates of the exponents."""
SPAN = 100
"""Largest decrease of the exponent from a state to the next one, in bits. In one interval a path
passes at most 2 * INTERVAL states, so that m is at most 2^(2 * INTERVAL * SPAN)."""
MIN_LOGPROB = -SPAN * math.log(2)
"""Smallest log-probability of a label for which no state of a path underflows."""
_GROUP = 1 << 21  # states of all frames that are computed together
_UNREACHED = -(2.0**40)


def scaled_likelihood(logits: Tensor, mask: Tensor, lattice: Lattice) -> Tensor | None:
    """Compute the log-probability [B] of the labels from logits, as `likelihood` does.

    Return None if a label of the lattice has a log-probability below `MIN_LOGPROB`.

    Shapes:
        logits [B, T, V], T > 0; mask [B, T], valid frames first.
    """
    logprobs = logits.detach().log_softmax(dim=-1)
    emissions = lattice.emissions(logprobs).masked_fill_(~mask[..., None], 0.0)
    if bool((emissions < MIN_LOGPROB).any()) or not bool(emissions.isfinite().all()):
        return None

    def compute(logits: Tensor, needs_gradient: bool) -> tuple[Tensor, Tensor | None]:
        size = max(1, _GROUP // (emissions.shape[1] * emissions.shape[2]))
        parts = [
            _posteriors(
                emissions[i : i + size],
                mask[i : i + size],
                lattice.can_skip[i : i + size],
                lattice.is_final[i : i + size],
                needs_gradient,
            )
            for i in range(0, len(logits), size)
        ]
        totals = torch.cat([total for total, _ in parts]).to(logits.dtype)
        if not needs_gradient:
            return totals, None
        used = mask & totals.isfinite()[:, None]
        gradient = -logprobs.exp() * used[..., None]
        index = lattice.labels[:, None].expand_as(emissions)
        posteriors = torch.cat([posterior for _, posterior in parts if posterior is not None])
        return totals, gradient.scatter_add_(2, index, posteriors.to(gradient.dtype))

    return apply_with_gradient(compute, logits)


def _posteriors(
    emissions: Tensor, mask: Tensor, can_skip: Tensor, is_final: Tensor, needs_posteriors: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the log-likelihood [B] and the posteriors of the states [B, T, L] if needed."""
    B, _, L = emissions.shape
    e = emissions.double().exp().transpose(0, 1)  # [T, B, L]
    # A padding frame has the blank with probability 1, which changes no probability.
    is_label = torch.arange(L) % 2 == 1
    e = e.masked_fill(~mask.T[..., None] & is_label, 0.0)
    start = (torch.arange(L) < 2).expand(B, L).double()
    skip = torch.nn.functional.pad(can_skip, (0, 2))[:, 2:].flip(1)
    before, after, exponents = _recursion(
        torch.cat([e, e.flip(0, 2)], dim=1),
        torch.cat([start, is_final.double().flip(1)]),
        torch.cat([can_skip, skip]),
    )
    forward, backward = after[:, :B], before[:, B:].flip(0, 2)  # [T, B, L]
    n = exponents[:, :B] + exponents[:, B:].flip(0, 2)
    first = forward[0].log() + backward[0].log() + n[0] * math.log(2)
    total = first[:, :2].logsumexp(dim=1)  # a path starts in the first blank or label
    if not needs_posteriors:
        return total, None
    # Both factors are scaled by the square root, so that neither overflows.
    bits = torch.where(total > NEG_INF, total, 0.0) / math.log(2)
    root = ((n - bits[:, None]) / 2).clamp_(-1000, 1000).exp2_()
    posterior = (forward * root).mul_(backward).mul_(root)
    used = mask & (total > NEG_INF)[:, None]
    return total, posterior.transpose(0, 1) * used[..., None]


def _recursion(e: Tensor, start: Tensor, can_skip: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the probabilities before and after the emissions e of each frame, and the exponents.

    Shapes:
        e [T, N, L]; start, can_skip [N, L] -> before, after, exponents [T, N, L].
    """
    T, N, L = e.shape
    before = e.new_zeros(T + 1, N, L)
    after = e.new_zeros(T, N, L + 2)  # two states before the first one stay 0
    own, one_back, two_back = (
        after[..., i : L + i].unbind() for i in (2, 1, 0)
    )  # each a list of [N, L]
    before[0] = start
    rows, frames, n = before.unbind(), e.unbind(), torch.zeros_like(start)
    exponents = []
    for t in range(T):
        if t % INTERVAL == 0:
            n = _normalise(rows[t], n)
            exponents.append(n)
            one = torch.nn.functional.pad(n, (1, 0), value=_UNREACHED)[:, :-1] - n
            two = torch.nn.functional.pad(n, (2, 0), value=_UNREACHED)[:, :-2] - n
            one, two = one.exp2(), two.exp2() * can_skip
        torch.mul(rows[t], frames[t], out=own[t])
        torch.addcmul(own[t], one_back[t], one, out=rows[t + 1])
        rows[t + 1].addcmul_(two_back[t], two)
    n = torch.stack(exponents).repeat_interleave(INTERVAL, dim=0)[:T]
    return before[:T], after[..., 2:], n


def _normalise(m: Tensor, n: Tensor) -> Tensor:
    """Move the exponents of m [N, L] to n [N, L] in place and return the new n.

    The exponent of a state is at least that of the state before it minus `SPAN`, because paths
    reach it from there before the next update.
    """
    fraction, exponent = torch.frexp(m)
    exact = torch.where(fraction > 0, n + exponent, _UNREACHED)
    slope = SPAN * torch.arange(m.shape[1], dtype=m.dtype)
    bounded = (exact + slope).cummax(dim=1).values - slope
    torch.mul(fraction, (exact - bounded).exp2_(), out=m)
    return bounded
