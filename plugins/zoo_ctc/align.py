"""Forced alignment: the likeliest path of a labelling along the frames."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.plugin import full_precision
from zoo_ctc.lattice import NEG_INF, Lattice, lattice


@dataclass(frozen=True)
class ForcedAlignment:
    """Where labels lie.

    Shapes:
        labels [B, T], the symbol of each frame, blank where a frame is padding; spans [B, U, 2],
        the frames from ``start`` up to, not including, ``end`` of each label, 0 and 0 where it is
        padding; logprob [B] of the path. A labelling that no path can spell has the logprob -inf,
        blank frames and empty spans.
    """

    labels: Tensor
    spans: Tensor
    logprob: Tensor


def align(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int = 0
) -> ForcedAlignment:
    """The likeliest path of each labelling, by Viterbi's algorithm; of equals, the one ahead.

    Shapes:
        logits [B, T, V], mask [B, T], targets [B, U], target_mask [B, U] with the real labels
        first.
    """
    ways = lattice(targets, target_mask, blank=blank, vocab=logits.shape[-1])
    path, logprob = _viterbi(full_precision(logits).log_softmax(dim=-1), mask, ways)
    possible = (logprob > NEG_INF)[:, None]
    real = mask & possible  # [B, T]
    labels = ways.labels.gather(1, path).masked_fill(~real, blank)
    return ForcedAlignment(labels, _spans(path, real, targets.shape[1]), logprob)


def _viterbi(logprobs: Tensor, mask: Tensor, ways: Lattice) -> tuple[Tensor, Tensor]:
    """The state at each frame [B, T], and the log-probability [B]."""
    emissions = ways.emissions(logprobs)
    best = ways.start(logprobs)
    moves = []
    for t in range(logprobs.shape[1]):
        score, move = ways.incoming(best).max(dim=0)
        real = mask[:, t, None]
        best = torch.where(real, score + emissions[:, t], best)
        moves.append(move * real)
    logprob, state = best.masked_fill(~ways.is_final, NEG_INF).max(dim=1)
    path = []
    for move in reversed(moves):
        path.append(state)
        state = state - move.gather(1, state[:, None])[:, 0]
    states = torch.stack(path[::-1], dim=1) if path else mask.long()
    return states, logprob


def _spans(path: Tensor, real: Tensor, U: int) -> Tensor:
    """path [B, T] of states -> the first frame of each label and the one after its last."""
    T = path.shape[1]
    label_states = 2 * torch.arange(U, device=path.device) + 1  # the states of the labels
    is_label = (path[:, None] == label_states[:, None]) & real[:, None]  # [B, U, T]
    frames = torch.arange(T, device=path.device)
    end = (
        (is_label * (frames + 1)).sum(dim=-1) if T == 0 else (is_label * (frames + 1)).amax(dim=-1)
    )
    return torch.stack([end - is_label.sum(dim=-1), end], dim=-1)
