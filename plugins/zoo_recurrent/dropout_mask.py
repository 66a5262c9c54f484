"""Dropout masks that several steps share.

Notation: B batch, S steps, D width.
"""

import torch
from torch import Tensor, nn


def sample_mask(dropout: nn.Dropout, like: Tensor) -> Tensor:
    """Return the factors by which dropout multiplies a tensor, in float32 or higher."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    mask: Tensor = dropout(torch.ones_like(like, dtype=dtype))
    return mask


def apply_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Multiply x by a mask, in the dtype of x."""
    return (x * mask).to(x.dtype)


def shared_dropout(dropout: nn.Dropout, x: Tensor) -> Tensor:
    """Apply dropout to x [B, S, D] with one mask [B, 1, D] for all steps."""
    return apply_mask(x, sample_mask(dropout, x[:, :1]))
