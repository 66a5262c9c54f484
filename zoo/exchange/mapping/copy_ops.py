"""Operations that copy one tensor to several, or merge equal tensors into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.exchange.mapping.operation import Operation, single_tensor


class Copy(Operation):
    """Copies a tensor to each target."""

    name: ClassVar[str] = "copy"

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        return [single_tensor("copy", tensors)] * num_outputs

    def inverse(self) -> Operation:
        return Merge()


class Merge(Operation):
    """Returns the first of several tensors, which must be equal."""

    name: ClassVar[str] = "merge"

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        if not tensors:
            raise ZooError("merge: no tensor matches the name")
        first, *others = tensors
        for index, other in enumerate(others, start=1):
            if other.shape != first.shape:
                shapes = f"{list(first.shape)} and {list(other.shape)}"
                raise ZooError(f"merge: tensors 0 and {index} have shapes {shapes}")
            if not first.is_meta and not torch.equal(first, other):
                raise ZooError(
                    f"merge: tensors 0 and {index} differ; they should be equal, because the other "
                    "side has one tensor"
                )
        return [first]

    def inverse(self) -> Operation:
        return Copy()
