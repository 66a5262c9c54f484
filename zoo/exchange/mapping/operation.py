"""What every operation of a map is: tensors in, tensors out, and the way back.

Shapes are checked by running the operation on the meta device, so no operation states its shapes
a second time. A refusal is a ZooError; the plan adds the line of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from zoo.errors import ZooError


class Operation:
    """One step of a rule. The constructor's signature is its schema, as for any part."""

    name: ClassVar[str]
    """The word a map uses."""
    shorthand: ClassVar[str] = ""
    """The parameter that a bare value sets: ``cast: float16``."""

    def apply_one(self, tensor: Tensor) -> Tensor:
        """The step on one tensor, where it is done to each alone."""
        raise NotImplementedError

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        """The step on all tensors; `num_outputs` is how many the rule must end with."""
        return [self.apply_one(tensor) for tensor in tensors]

    def reverse(self) -> Operation:
        """The step back, or ZooError with the reason why there is none."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


def single_tensor(operation: str, tensors: Sequence[Tensor]) -> Tensor:
    """The only tensor, for an operation that takes one."""
    if len(tensors) != 1:
        raise ZooError(f"{operation} takes one tensor, but here are {len(tensors)}")
    return tensors[0]


def dim_size(tensor: Tensor, dim: int) -> int:
    """The size of a dimension, or ZooError if there is none."""
    if not -tensor.ndim <= dim < tensor.ndim:
        raise ZooError(f"there is no dimension {dim} in {list(tensor.shape)}")
    return tensor.shape[dim]
