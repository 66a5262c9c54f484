"""Operations that change the shape or the dtype of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.errors import ZooError
from zoo_exchange.mapping.operation import Operation, dim_size

Dtype = Literal["float64", "float32", "float16", "bfloat16"]


class Transpose(Operation):
    """Swaps two dimensions, by default the first two."""

    name: ClassVar[str] = "transpose"
    shorthand: ClassVar[str] = "dims"

    def __init__(self, *, dims: tuple[int, int] = (0, 1)) -> None:
        self.dims = dims

    def apply_one(self, tensor: Tensor) -> Tensor:
        for dim in self.dims:
            dim_size(tensor, dim)
        return tensor.transpose(*self.dims)

    def inverse(self) -> Operation:
        return self


class Permute(Operation):
    """Permutes the dimensions: ``permute: [3, 2, 0, 1]``."""

    name: ClassVar[str] = "permute"
    shorthand: ClassVar[str] = "dims"

    def __init__(self, *, dims: Sequence[Annotated[int, Field(ge=0)]]) -> None:
        self.dims = list(dims)
        if sorted(self.dims) != list(range(len(self.dims))):
            raise ZooError(f"permute should list every dimension once, but lists {self.dims}")

    def apply_one(self, tensor: Tensor) -> Tensor:
        if tensor.ndim != len(self.dims):
            raise ZooError(
                f"permute lists {len(self.dims)} dimensions, but the shape is {list(tensor.shape)}"
            )
        return tensor.permute(self.dims)

    def inverse(self) -> Operation:
        return Permute(dims=[self.dims.index(dim) for dim in range(len(self.dims))])


class Reshape(Operation):
    """Reshapes a tensor; -1 is inferred."""

    name: ClassVar[str] = "reshape"
    shorthand: ClassVar[str] = "ours"

    def __init__(
        self,
        *,
        ours: Sequence[Annotated[int, Field(ge=-1)]],
        theirs: Sequence[Annotated[int, Field(ge=-1)]] | None = None,
    ) -> None:
        self.ours = list(ours)
        self.theirs = None if theirs is None else list(theirs)

    def apply_one(self, tensor: Tensor) -> Tensor:
        if self.theirs is not None and not _shape_matches(tensor, self.theirs):
            raise ZooError(f"reshape expects shape {self.theirs}, but got {list(tensor.shape)}")
        if not _can_reshape(tensor.numel(), self.ours):
            raise ZooError(f"shape {list(tensor.shape)} cannot be reshaped to {self.ours}")
        return tensor.reshape(self.ours)

    def inverse(self) -> Operation:
        if self.theirs is None:
            raise ZooError("reshape has no inverse without 'theirs', the shape before it")
        return Reshape(ours=self.theirs, theirs=self.ours)


def _can_reshape(numel: int, shape: Sequence[int]) -> bool:
    known = prod(size for size in shape if size >= 0)
    inferred = shape.count(-1)
    if inferred == 0:
        return numel == known
    return inferred == 1 and known > 0 and numel % known == 0


def _shape_matches(tensor: Tensor, shape: Sequence[int]) -> bool:
    return tensor.ndim == len(shape) and all(
        expected in (-1, size) for expected, size in zip(shape, tensor.shape, strict=True)
    )


class Squeeze(Operation):
    """Removes a dimension of size 1, such as the kernel of a convolution of width 1."""

    name: ClassVar[str] = "squeeze"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        if dim_size(tensor, self.dim) != 1:
            raise ZooError(
                f"squeeze: dimension {self.dim} of {list(tensor.shape)} should have size 1"
            )
        return tensor.squeeze(self.dim)

    def inverse(self) -> Operation:
        return Unsqueeze(dim=self.dim)


class Unsqueeze(Operation):
    """Adds a dimension of size 1."""

    name: ClassVar[str] = "unsqueeze"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        if not -tensor.ndim - 1 <= self.dim <= tensor.ndim:
            raise ZooError(
                f"unsqueeze: dimension {self.dim} is out of range for {list(tensor.shape)}"
            )
        return tensor.unsqueeze(self.dim)

    def inverse(self) -> Operation:
        return Squeeze(dim=self.dim)


class Slice(Operation):
    """Keeps the range from `start` to `stop` along a dimension.

    ``export: zeros`` pads with zeros: `start` of them before, and up to `size` in total.
    """

    name: ClassVar[str] = "slice"

    def __init__(
        self,
        *,
        start: Annotated[int, Field(ge=0)] = 0,
        stop: Annotated[int, Field(ge=1)] | None = None,
        dim: int = 0,
        size: Annotated[int, Field(ge=1)] | None = None,
        export: Literal["zeros"] | None = None,
    ) -> None:
        if stop is not None and stop <= start:
            raise ZooError(f"slice from {start} to {stop} is empty")
        self.start, self.stop, self.dim, self.size, self.export = start, stop, dim, size, export

    def apply_one(self, tensor: Tensor) -> Tensor:
        size = dim_size(tensor, self.dim)
        stop = size if self.stop is None else self.stop
        if self.size not in (None, size):
            raise ZooError(f"slice expects size {self.size}, but the shape is {list(tensor.shape)}")
        if not self.start < stop <= size:
            raise ZooError(
                f"slice from {self.start} to {stop} is out of range for {list(tensor.shape)}"
            )
        return tensor.narrow(self.dim, self.start, stop - self.start)

    def inverse(self) -> Operation:
        if self.export is None:
            raise ZooError("slice has no inverse; set 'export: zeros' to pad with zeros")
        if self.stop is not None and self.size is None:
            raise ZooError("slice with 'stop' needs 'size' for export")
        after = 0 if self.stop is None or self.size is None else self.size - self.stop
        return Pad(before=self.start, after=after, dim=self.dim)


class Pad(Operation):
    """Pads a dimension with zeros."""

    name: ClassVar[str] = "pad"

    def __init__(
        self,
        *,
        before: Annotated[int, Field(ge=0)] = 0,
        after: Annotated[int, Field(ge=0)] = 0,
        dim: int = 0,
    ) -> None:
        self.before, self.after, self.dim = before, after, dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        dim_size(tensor, self.dim)

        def zeros(count: int) -> Tensor:
            shape = list(tensor.shape)
            shape[self.dim] = count
            return tensor.new_zeros(shape)

        return torch.cat([zeros(self.before), tensor, zeros(self.after)], dim=self.dim)

    def inverse(self) -> Operation:
        return Unpad(before=self.before, after=self.after, dim=self.dim)


class Unpad(Operation):
    """Inverse of `Pad`: removes the padding, which must be zero."""

    name: ClassVar[str] = "unpad"
    checks_values: ClassVar[bool] = True

    def __init__(self, *, before: int, after: int, dim: int) -> None:
        self.before, self.after, self.dim = before, after, dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        length = dim_size(tensor, self.dim) - self.before - self.after
        if length < 1:
            raise ZooError(
                f"unpad: {self.before} + {self.after} elements cannot be removed from dimension "
                f"{self.dim} of {list(tensor.shape)}"
            )
        kept = tensor.narrow(self.dim, self.before, length)
        if not tensor.is_meta and tensor.count_nonzero() > kept.count_nonzero():
            raise ZooError("pad: the padding is not zero any more; an export would lose it")
        return kept

    def inverse(self) -> Operation:
        return Pad(before=self.before, after=self.after, dim=self.dim)


class Cast(Operation):
    """Converts to another floating-point dtype; exports to `export`, or unchanged."""

    name: ClassVar[str] = "cast"
    shorthand: ClassVar[str] = "to"

    def __init__(self, *, to: Dtype | None, export: Dtype | None = None) -> None:
        self.to, self.export = to, export

    def apply_one(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            raise ZooError(f"cast takes floating-point tensors, but got {tensor.dtype}")
        return tensor if self.to is None else tensor.to(getattr(torch, self.to))

    def inverse(self) -> Operation:
        return Cast(to=self.export, export=self.to)

    def __str__(self) -> str:
        return f"cast to {self.to}" if self.to else "no cast"
