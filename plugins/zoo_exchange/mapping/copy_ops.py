"""Operations that copy one tensor to several, or merge equal tensors into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo_exchange.mapping.operation import Operation, single_tensor


class Copy(Operation):
    """Copies a tensor to each target."""

    name: ClassVar[str] = "copy"

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        return [single_tensor("copy", tensors)] * num_outputs

    def inverse(self) -> Operation:
        return Merge()


class UnequalTensorsError(ZooError):
    """Two of the tensors that `Merge` takes differ.

    Args:
        index: the index of the tensor that differs from the first.
        count: the number of tensors.
        difference: the largest absolute difference.
    """

    def __init__(self, index: int, count: int, difference: float) -> None:
        self.index, self.count, self.difference = index, count, difference
        super().__init__(self.message("tensor 0", f"tensor {index}"))

    def message(self, first: str, other: str) -> str:
        return (
            f"merge: {first} and {other} differ by up to {self.difference:.3g}; they should be "
            "equal, because the other side has one tensor"
        )


class Merge(Operation):
    """Returns the first of several tensors, which must have the same bits."""

    name: ClassVar[str] = "merge"
    checks_values: ClassVar[bool] = True

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        if not tensors:
            raise ZooError("merge: no tensor matches the name")
        first, *others = tensors
        for index, other in enumerate(others, start=1):
            if other.shape != first.shape:
                shapes = f"{list(first.shape)} and {list(other.shape)}"
                raise ZooError(f"merge: tensors 0 and {index} have shapes {shapes}")
            if other.dtype != first.dtype:
                dtypes = f"{first.dtype} and {other.dtype}"
                raise ZooError(f"merge: tensors 0 and {index} have dtypes {dtypes}")
            if not first.is_meta and not torch.equal(_bits(first), _bits(other)):
                raise UnequalTensorsError(index, len(tensors), _largest_difference(first, other))
        return [first]

    def inverse(self) -> Operation:
        return Copy()


def _bits(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor: NaN equals itself, and 0 differs from -0."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _largest_difference(first: Tensor, other: Tensor) -> float:
    dtype = torch.complex128 if first.is_complex() else torch.float64
    return (first.to(dtype) - other.to(dtype)).abs().nan_to_num(nan=math.inf).max().item()
