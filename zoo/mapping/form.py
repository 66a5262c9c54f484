"""What is known of a tensor before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor


@dataclass(frozen=True)
class Form:
    """Shape and type."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Form:
        return cls(tuple(tensor.shape), tensor.dtype)

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def empty(self) -> Tensor:
        """A tensor of this form without storage."""
        return torch.empty(self.shape, dtype=self.dtype, device="meta")
