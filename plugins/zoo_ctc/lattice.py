"""The lattice of CTC: the labels with a blank before, between and after them.

Letters: B batch, T frames, U labels, L = 2U + 1 states, V symbols with the blank.
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
    """What a path may pass through on its way to a labelling.

    A path stands in the first blank before the first frame. At each frame it stays, moves on by
    one state, or leaps over the blank between two different labels.

    Shapes:
        labels [B, L], the symbol of each state; leaps [B, L], True where a state can be reached
        from two before; ends [B, L], True where a path may end: nowhere if a label is no symbol.
    """

    labels: Tensor
    can_skip: Tensor
    is_final: Tensor

    def start(self, like: Tensor) -> Tensor:
        """Log-probabilities [B, L] before the first frame."""
        first = torch.arange(self.labels.shape[1], device=like.device) == 0
        nowhere = like.new_full(self.labels.shape, NEG_INF)
        return nowhere.masked_fill(first, 0.0)

    def incoming(self, values: Tensor) -> Tensor:
        """values [B, L] of the states before -> [3, B, L], by how far the path has moved."""
        before = F.pad(values, (2, 0), value=NEG_INF)
        skipped = before[:, :-2].masked_fill(~self.can_skip, NEG_INF)
        return torch.stack([values, before[:, 1:-1], skipped])

    def outgoing(self, values: Tensor) -> Tensor:
        """values [B, L] of the states after -> [3, B, L], by how far the path will move."""
        after = F.pad(values, (0, 2), value=NEG_INF)
        can_skip = F.pad(self.can_skip, (0, 2))[:, 2:]
        return torch.stack([values, after[:, 1:-1], after[:, 2:].masked_fill(~can_skip, NEG_INF)])

    def emissions(self, logprobs: Tensor) -> Tensor:
        """logprobs [B, T, V] -> [B, T, L], what each state says at each frame."""
        return logprobs.gather(2, self.labels[:, None].expand(-1, logprobs.shape[1], -1))


def lattice(targets: Tensor, target_mask: Tensor, *, blank: int, vocab: int) -> Lattice:
    """The lattice of targets [B, U], of which the real ones come first in target_mask [B, U]."""
    if blank >= vocab:
        raise ZooError(f"blank ({blank}) must be a symbol below the {vocab} of the logits")
    _validate_labels(targets, target_mask, blank=blank, vocab=vocab)
    invalid = (targets < 0) | (targets >= vocab) | (targets == blank)
    between = torch.full_like(targets, blank)
    real = torch.where(target_mask & ~invalid, targets, between)
    labels = torch.stack([between, real], dim=-1).flatten(1)  # [B, 2U]
    labels = F.pad(labels, (0, 1), value=blank)
    two_before = F.pad(labels, (2, 0), value=blank)[:, :-2]
    can_skip = (labels != two_before) & (labels != blank)
    known = ~(invalid & target_mask).any(dim=1)
    last = 2 * target_mask.sum(dim=1, keepdim=True)  # [B, 1], the blank after the last label
    state = torch.arange(labels.shape[1], device=targets.device)
    is_final = ((state == last) | (state == last - 1)) & known[:, None]
    return Lattice(labels, can_skip, is_final)


def _validate_labels(targets: Tensor, target_mask: Tensor, *, blank: int, vocab: int) -> None:
    """ZooError if a label is no symbol; only on the CPU, for elsewhere the host would wait."""
    if torch.compiler.is_compiling() or targets.device.type != "cpu":
        return
    if bool((target_mask[:, 1:] & ~target_mask[:, :-1]).any()):
        raise ZooError("a label follows padding; target_mask must have the real labels first")
    valid_labels = targets[target_mask]
    if bool((valid_labels == blank).any()):
        raise ZooError(f"a target has the blank ({blank}) as a label; no label may be the blank")
    invalid = valid_labels[(valid_labels < 0) | (valid_labels >= vocab)]
    if len(invalid):
        raise ZooError(
            f"a target has the label {int(invalid[0])}, outside the {vocab} symbols of the logits"
        )
