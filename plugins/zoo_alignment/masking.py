"""Masked operations shared by alignments."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from zoo.plugin import full_precision


def expand_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Expand the mask to the shape of the scores [..., T, S]; all True if it is None."""
    if mask is None:
        return torch.ones_like(scores, dtype=torch.bool)
    return mask.expand_as(scores)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Compute the softmax over keys that are not masked [..., T, S]; zero if all are masked."""
    if mask is None:
        return scores.softmax(dim=-1)
    # Not -inf: the softmax of a fully masked row would be NaN.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def valid_positions(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index of each key among those that are not masked [..., T, S], and their number
    [..., T, 1]."""
    position = mask.long().cumsum(dim=-1) - 1
    return position, mask.sum(dim=-1, keepdim=True)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context without autocast; the meta device has none."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


MIN_SCORE = -2.0
"""Scores this far below the maximum get weight 0 in sparsemax and entmax."""


def shift_and_sort(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores shifted to a maximum of 0, with masked ones at 0, and a detached copy
    sorted in descending order, with masked ones at MIN_SCORE. Both [..., T, S]."""
    lowest = torch.finfo(scores.dtype).min
    top = scores.detach().masked_fill(~mask, lowest).amax(dim=-1, keepdim=True)
    z = (scores.masked_fill(~mask, 0.0) - top).masked_fill(~mask, 0.0)
    z_sorted = (
        z.detach().masked_fill(~mask, MIN_SCORE).clamp(min=MIN_SCORE).sort(dim=-1, descending=True)
    )
    return z, full_precision(z_sorted.values)
