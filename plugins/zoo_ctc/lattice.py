"""The CTC lattice: the labels with a blank before, between and after them.

Notation: B batch size, T frames, U labels, L = 2U + 1 states, V vocabulary including the blank.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import ZooError

NEG_INF = float("-inf")


@dataclass(frozen=True)
class Lattice:
    """States and transitions of the paths of a label sequence.

    A path starts in the first blank. At each frame it stays, moves to the next state, or skips the
    blank between two different labels.

    Shapes:
        labels [B, L], the label of each state; can_skip [B, L], True if a state can be reached from
        two states before; is_final [B, L], True if a path may end in a state (False everywhere for
        an item with an invalid label).
    """

    labels: Tensor
    can_skip: Tensor
    is_final: Tensor

    def start(self, like: Tensor) -> Tensor:
        """Return the log-probabilities [B, L] before the first frame."""
        first = torch.arange(self.labels.shape[1], device=like.device) == 0
        initial = like.new_full(self.labels.shape, NEG_INF)
        return initial.masked_fill(first, 0.0)

    def incoming(self, values: Tensor) -> Tensor:
        """Return the values [B, L] of the previous states by step size: [3, B, L]."""
        padded = F.pad(values, (2, 0), value=NEG_INF)
        skipped = padded[:, :-2].masked_fill(~self.can_skip, NEG_INF)
        return torch.stack([values, padded[:, 1:-1], skipped])

    def outgoing(self, values: Tensor) -> Tensor:
        """Return the values [B, L] of the next states by step size: [3, B, L]."""
        padded = F.pad(values, (0, 2), value=NEG_INF)
        can_skip = F.pad(self.can_skip, (0, 2))[:, 2:]
        return torch.stack([values, padded[:, 1:-1], padded[:, 2:].masked_fill(~can_skip, NEG_INF)])

    def emissions(self, logprobs: Tensor) -> Tensor:
        """Return the log-probability of each state at each frame: [B, T, V] -> [B, T, L]."""
        return logprobs.gather(2, self.labels[:, None].expand(-1, logprobs.shape[1], -1))


def build_lattice(targets: Tensor, target_mask: Tensor, *, blank: int, vocab: int) -> Lattice:
    """Build the lattice of targets [B, U] with target_mask [B, U], valid labels first."""
    validate_labels(targets, target_mask, blank=blank, vocab=vocab)
    invalid = (targets < 0) | (targets >= vocab) | (targets == blank)
    blanks = torch.full_like(targets, blank)
    valid = torch.where(target_mask & ~invalid, targets, blanks)
    labels = torch.stack([blanks, valid], dim=-1).flatten(1)  # [B, 2U]
    labels = F.pad(labels, (0, 1), value=blank)
    two_before = F.pad(labels, (2, 0), value=blank)[:, :-2]
    can_skip = (labels != two_before) & (labels != blank)
    all_valid = ~(invalid & target_mask).any(dim=1)
    last = 2 * target_mask.sum(dim=1, keepdim=True)  # [B, 1], the blank after the last label
    state = torch.arange(labels.shape[1], device=targets.device)
    is_final = ((state == last) | (state == last - 1)) & all_valid[:, None]
    return Lattice(labels, can_skip, is_final)


def validate_labels(targets: Tensor, target_mask: Tensor, *, blank: int, vocab: int) -> None:
    """Raise ZooError for an invalid blank, and for an invalid label on the CPU only, to avoid
    synchronisation elsewhere."""
    if blank >= vocab:
        raise ZooError(f"blank ({blank}) must be less than the vocabulary size ({vocab})")
    if torch.compiler.is_compiling() or targets.device.type != "cpu":
        return
    if bool((target_mask[:, 1:] & ~target_mask[:, :-1]).any()):
        raise ZooError("target_mask has a label after padding; valid labels must come first")
    valid_labels = targets[target_mask]
    if bool((valid_labels == blank).any()):
        raise ZooError(f"targets contain the blank ({blank}), which is not a label")
    invalid = valid_labels[(valid_labels < 0) | (valid_labels >= vocab)]
    if len(invalid):
        raise ZooError(
            f"targets contain label {int(invalid[0])}, but must be at least 0 and less than the "
            f"vocabulary size ({vocab})"
        )
