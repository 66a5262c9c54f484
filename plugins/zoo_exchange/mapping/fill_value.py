"""Values of tensors that have no counterpart: a constant, or the identity matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from zoo.errors import ZooError

FillName = Literal["zeros", "ones", "identity"]
FillValue = float | Literal["identity"]

_CONSTANTS = {"zeros": 0.0, "ones": 1.0}


def to_fill_value(value: FillName | float) -> FillValue:
    """Return the value of an entry of a map."""
    if value == "identity":
        return "identity"
    return float(_CONSTANTS.get(value, value)) if isinstance(value, str) else float(value)


def check_fill(shape: Sequence[int], value: FillValue, dtype: torch.dtype) -> None:
    """Raise ZooError if a tensor of this shape and dtype cannot have the value."""
    if value == "identity":
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ZooError(f"identity needs a square matrix, but the shape is {list(shape)}")
        return
    try:
        torch.full((), value, dtype=dtype)
    except RuntimeError:
        raise ZooError(f"{value:g} is out of range for {dtype}") from None


def filled_tensor(shape: Sequence[int], value: FillValue, dtype: torch.dtype) -> Tensor:
    """Return a tensor with this value."""
    if value == "identity":
        return torch.eye(*shape, dtype=dtype)
    return torch.full(tuple(shape), value, dtype=dtype)


def format_fill_value(value: FillValue) -> str:
    return value if isinstance(value, str) else f"{value:g}"
