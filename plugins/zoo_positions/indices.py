"""The indices of the positions a part is asked for."""

import torch
from torch import Tensor


def indices(count: int, offset: int | Tensor, device: torch.device) -> Tensor:
    """offset, offset + 1, ...: [count], with no question to the host if the offset is a tensor."""
    return torch.arange(count, device=device) + offset
