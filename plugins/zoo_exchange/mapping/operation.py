"""The base class of a map's operations.

Shapes are checked by running an operation on the meta device, so operations do not state them
separately. They raise ZooError; the planner adds the line of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from zoo.errors import ZooError


class Operation:
    """One step of a rule. The constructor's signature is the schema of its arguments."""

    name: ClassVar[str]
    """The name in a map."""
    shorthand: ClassVar[str] = ""
    """The parameter that a bare value sets, as in ``cast: float16``."""
    checks_values: ClassVar[bool] = False
    """Whether it raises for some values, which tensors on the meta device do not have."""

    def apply_one(self, tensor: Tensor) -> Tensor:
        """Apply the operation to one tensor."""
        raise NotImplementedError

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        """Apply the operation to all tensors of a rule that has `num_outputs` targets."""
        return [self.apply_one(tensor) for tensor in tensors]

    def inverse(self) -> Operation:
        """Return the inverse operation; raise ZooError if there is none."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


def single_tensor(operation: str, tensors: Sequence[Tensor]) -> Tensor:
    """Return the only tensor, for an operation with one input."""
    if len(tensors) != 1:
        raise ZooError(f"{operation} takes one tensor, but the rule has {len(tensors)}")
    return tensors[0]


def dim_size(tensor: Tensor, dim: int) -> int:
    """Return the size of a dimension; raise ZooError if the tensor does not have it."""
    if not -tensor.ndim <= dim < tensor.ndim:
        raise ZooError(f"dimension {dim} is out of range for shape {list(tensor.shape)}")
    return tensor.shape[dim]
