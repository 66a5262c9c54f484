"""Tensors that lie in files: what is known of them before they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor


@dataclass(frozen=True)
class Form:
    """What is known of one: shape and type."""

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


@dataclass(frozen=True)
class Opened:
    """Tensors of one or more files: their forms at once, each of them when asked for."""

    forms: Mapping[str, Form]
    read: Callable[[str], Tensor]
