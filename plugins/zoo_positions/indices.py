"""Indices of positions."""

import torch
from torch import Tensor


def indices(count: int, offset: int | Tensor, device: torch.device) -> Tensor:
    """Return offset, offset + 1, ... [count], without synchronisation if offset is a tensor."""
    return torch.arange(count, device=device) + offset
