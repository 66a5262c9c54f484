"""What several alignments do with masks."""

import torch
from torch import Tensor

from zoo.plugin import full_precision


def expand_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The mask as large as the scores [..., T, S]; without one, all is open."""
    if mask is None:
        return torch.ones_like(scores, dtype=torch.bool)
    return mask.expand_as(scores)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the open keys [..., T, S]; zeros in a row with nothing open."""
    if mask is None:
        return scores.softmax(dim=-1)
    # A row with nothing open would be softmax of all -inf, which is NaN.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def valid_positions(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Where each open key stands among the open keys, 0, 1, ... [..., T, S], and how many are
    open [..., T, 1]; so padding, wherever it is, takes no place."""
    place = mask.long().cumsum(dim=-1) - 1
    return place, mask.sum(dim=-1, keepdim=True)


FLOOR = -2.0
"""Below what sparsemax and entmax can give weight to, once the best score is 0."""


def shift_and_sort(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Scores with the best open one at 0, masked ones at 0 too; and, without gradients, the
    same from high to low, those without hope or masked at FLOOR. Both [..., T, S]."""
    lowest = torch.finfo(scores.dtype).min
    top = scores.detach().masked_fill(~mask, lowest).amax(dim=-1, keepdim=True)
    z = (scores.masked_fill(~mask, 0.0) - top).masked_fill(~mask, 0.0)
    z_sorted = z.detach().masked_fill(~mask, FLOOR).clamp(min=FLOOR).sort(dim=-1, descending=True)
    return z, full_precision(z_sorted.values)
