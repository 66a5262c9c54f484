"""Operations that leave the numbers as they are and move or recast them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.errors import ZooError
from zoo.exchange.mapping.operation import Operation, dim_size

Dtype = Literal["float64", "float32", "float16", "bfloat16"]


class Transpose(Operation):
    """Swaps two dimensions; the first two if not said otherwise."""

    name: ClassVar[str] = "transpose"
    shorthand: ClassVar[str] = "dims"

    def __init__(self, *, dims: tuple[int, int] = (0, 1)) -> None:
        self.dims = dims

    def apply_one(self, tensor: Tensor) -> Tensor:
        for dim in self.dims:
            dim_size(tensor, dim)
        return tensor.transpose(*self.dims)

    def reverse(self) -> Operation:
        return self


class Permute(Operation):
    """Puts the dimensions in another order: ``permute: [3, 2, 0, 1]``."""

    name: ClassVar[str] = "permute"
    shorthand: ClassVar[str] = "dims"

    def __init__(self, *, dims: Sequence[Annotated[int, Field(ge=0)]]) -> None:
        self.dims = list(dims)
        if sorted(self.dims) != list(range(len(self.dims))):
            raise ZooError(f"permute needs every dimension once, not {self.dims}")

    def apply_one(self, tensor: Tensor) -> Tensor:
        if tensor.ndim != len(self.dims):
            raise ZooError(f"permute orders {len(self.dims)} dimensions, not {list(tensor.shape)}")
        return tensor.permute(self.dims)

    def reverse(self) -> Operation:
        return Permute(dims=[self.dims.index(dim) for dim in range(len(self.dims))])


class Reshape(Operation):
    """Reads the same numbers in another shape; -1 is what is left over."""

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
            raise ZooError(f"reshape expects {self.theirs}, but finds {list(tensor.shape)}")
        if not _can_reshape(tensor.numel(), self.ours):
            raise ZooError(f"reshape cannot make {self.ours} of {list(tensor.shape)}")
        return tensor.reshape(self.ours)

    def reverse(self) -> Operation:
        if self.theirs is None:
            raise ZooError("reshape can be undone only where 'theirs' says the shape before")
        return Reshape(ours=self.theirs, theirs=self.ours)


def _can_reshape(numbers: int, shape: Sequence[int]) -> bool:
    known = prod(size for size in shape if size >= 0)
    left_over = shape.count(-1)
    if left_over == 0:
        return numbers == known
    return left_over == 1 and known > 0 and numbers % known == 0


def _shape_matches(tensor: Tensor, shape: Sequence[int]) -> bool:
    return tensor.ndim == len(shape) and all(
        wanted in (-1, size) for wanted, size in zip(shape, tensor.shape, strict=True)
    )


class Squeeze(Operation):
    """Takes away a dimension of size 1, as of a convolution of width 1."""

    name: ClassVar[str] = "squeeze"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        if dim_size(tensor, self.dim) != 1:
            raise ZooError(f"squeeze needs size 1 in dimension {self.dim} of {list(tensor.shape)}")
        return tensor.squeeze(self.dim)

    def reverse(self) -> Operation:
        return Unsqueeze(dim=self.dim)


class Unsqueeze(Operation):
    """Adds a dimension of size 1."""

    name: ClassVar[str] = "unsqueeze"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        if not -tensor.ndim - 1 <= self.dim <= tensor.ndim:
            raise ZooError(f"unsqueeze finds no place {self.dim} in {list(tensor.shape)}")
        return tensor.unsqueeze(self.dim)

    def reverse(self) -> Operation:
        return Squeeze(dim=self.dim)


class Slice(Operation):
    """Keeps what lies from `start` to `stop` along a dimension.

    ``export: zeros`` puts zeros where the rest was: `start` of them before, and up to `size` in
    all behind.
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
            raise ZooError(f"slice from {start} to {stop} keeps nothing")
        self.start, self.stop, self.dim, self.size, self.export = start, stop, dim, size, export

    def apply_one(self, tensor: Tensor) -> Tensor:
        size = dim_size(tensor, self.dim)
        stop = size if self.stop is None else self.stop
        if self.size not in (None, size):
            raise ZooError(f"slice expects size {self.size}, but finds {list(tensor.shape)}")
        if not self.start < stop <= size:
            raise ZooError(f"slice from {self.start} to {stop} leaves {list(tensor.shape)}")
        return tensor.narrow(self.dim, self.start, stop - self.start)

    def reverse(self) -> Operation:
        if self.export is None:
            raise ZooError("slice cannot bring back what it left out; 'export: zeros' fills it")
        if self.stop is not None and self.size is None:
            raise ZooError("slice with a 'stop' needs 'size' for the way back")
        after = 0 if self.stop is None or self.size is None else self.size - self.stop
        return Pad(before=self.start, after=after, dim=self.dim)


class Pad(Operation):
    """Puts zeros before and after along a dimension."""

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

    def reverse(self) -> Operation:
        return Unpad(before=self.before, after=self.after, dim=self.dim)


class Unpad(Operation):
    """Takes away what Pad put there."""

    name: ClassVar[str] = "unpad"

    def __init__(self, *, before: int, after: int, dim: int) -> None:
        self.before, self.after, self.dim = before, after, dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        left = dim_size(tensor, self.dim) - self.before - self.after
        if left < 1:
            raise ZooError(f"unpad leaves nothing of {list(tensor.shape)}")
        return tensor.narrow(self.dim, self.before, left)

    def reverse(self) -> Operation:
        return Pad(before=self.before, after=self.after, dim=self.dim)


class Cast(Operation):
    """Another floating type; the way back leaves it unless `export` names one."""

    name: ClassVar[str] = "cast"
    shorthand: ClassVar[str] = "to"

    def __init__(self, *, to: Dtype | None, export: Dtype | None = None) -> None:
        self.to, self.export = to, export

    def apply_one(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            raise ZooError(f"cast takes floating numbers, not {tensor.dtype}")
        return tensor if self.to is None else tensor.to(getattr(torch, self.to))

    def reverse(self) -> Operation:
        return Cast(to=self.export, export=self.to)

    def __str__(self) -> str:
        return f"cast to {self.to}" if self.to else "cast to nothing else"
