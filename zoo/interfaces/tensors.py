"""Tensors that lie in files: what is known of them before they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor


@dataclass(frozen=True)
class TensorMeta:
    """What is known of one: shape and type."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> TensorMeta:
        return cls(tuple(tensor.shape), tensor.dtype)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def empty(self) -> Tensor:
        """A tensor of this form without storage."""
        return torch.empty(self.shape, dtype=self.dtype, device="meta")


@dataclass(frozen=True)
class TensorReader:
    """Tensors of one or more files: their forms at once, each of them when asked for."""

    metas: Mapping[str, TensorMeta]
    read: Callable[[str], Tensor]
