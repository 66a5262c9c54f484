"""Forced alignment: the most probable path of labels through the frames."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.plugin import full_precision
from zoo_ctc.lattice import NEG_INF, Lattice, build_lattice


@dataclass(frozen=True)
class ForcedAlignment:
    """Alignment of labels with frames.

    Shapes:
        labels [B, T], the label of each frame, blank at padding; spans [B, U, 2], the first frame
        of each label and the frame after its last, 0 and 0 at padding; logprob [B] of the path. An
        item without a path has logprob -inf, blank frames and empty spans.
    """

    labels: Tensor
    spans: Tensor
    logprob: Tensor


def align(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int = 0
) -> ForcedAlignment:
    """Find the most probable path of each item with the Viterbi algorithm.

    Shapes:
        logits [B, T, V], mask [B, T], targets [B, U], target_mask [B, U] with valid labels first.
    """
    lattice = build_lattice(targets, target_mask, blank=blank, vocab=logits.shape[-1])
    path, logprob = _viterbi(full_precision(logits).log_softmax(dim=-1), mask, lattice)
    possible = (logprob > NEG_INF)[:, None]
    valid = mask & possible  # [B, T]
    labels = lattice.labels.gather(1, path).masked_fill(~valid, blank)
    return ForcedAlignment(labels, _spans(path, valid, targets.shape[1]), logprob)


def _viterbi(logprobs: Tensor, mask: Tensor, lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the state at each frame [B, T] and the log-probability [B]."""
    emissions = lattice.emissions(logprobs)
    best = lattice.start(logprobs)
    moves = []
    for t in range(logprobs.shape[1]):
        score, move = lattice.incoming(best).max(dim=0)
        valid = mask[:, t, None]
        best = torch.where(valid, score + emissions[:, t], best)
        moves.append(move * valid)
    logprob, state = best.masked_fill(~lattice.is_final, NEG_INF).max(dim=1)
    path = []
    for move in reversed(moves):
        path.append(state)
        state = state - move.gather(1, state[:, None])[:, 0]
    states = torch.stack(path[::-1], dim=1) if path else mask.long()
    return states, logprob


def _spans(path: Tensor, valid: Tensor, U: int) -> Tensor:
    """Return the first frame of each label and the frame after its last: [B, U, 2]."""
    T = path.shape[1]
    label_states = 2 * torch.arange(U, device=path.device) + 1
    is_label = (path[:, None] == label_states[:, None]) & valid[:, None]  # [B, U, T]
    frames = torch.arange(T, device=path.device)
    end = (
        (is_label * (frames + 1)).sum(dim=-1) if T == 0 else (is_label * (frames + 1)).amax(dim=-1)
    )
    return torch.stack([end - is_label.sum(dim=-1), end], dim=-1)
