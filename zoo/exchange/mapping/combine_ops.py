"""Operations that make one tensor of several, or several of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.errors import ZooError
from zoo.exchange.mapping.operation import Operation, dim_size, single_tensor

SectionSizes = Sequence[Annotated[int, Field(ge=1)]]


class Split(Operation):
    """Cuts a tensor along a dimension: into equal parts, or into `sections`."""

    name: ClassVar[str] = "split"

    def __init__(self, *, dim: int = 0, sections: SectionSizes | None = None) -> None:
        self.dim, self.sections = dim, None if sections is None else list(sections)

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        whole = single_tensor("split", tensors)
        size = dim_size(whole, self.dim)
        if self.sections is None:
            if size % num_outputs:
                raise ZooError(
                    f"split: {size} is no multiple of {num_outputs} parts; give 'sections'"
                )
            return list(torch.split(whole, size // num_outputs, dim=self.dim))
        if sum(self.sections) != size or len(self.sections) != num_outputs:
            raise ZooError(
                f"split: sections {self.sections} do not make {num_outputs} parts of {list(whole.shape)}"
            )
        return list(torch.split(whole, self.sections, dim=self.dim))

    def reverse(self) -> Operation:
        return Join(dim=self.dim, sections=self.sections)


class Join(Operation):
    """Puts tensors side by side; parts of unequal size need `sections` for the way back."""

    name: ClassVar[str] = "join"

    def __init__(self, *, dim: int = 0, sections: SectionSizes | None = None) -> None:
        self.dim, self.sections = dim, None if sections is None else list(sections)

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        sizes = [dim_size(tensor, self.dim) for tensor in tensors]
        if self.sections is None and len(set(sizes)) > 1:
            raise ZooError(f"join: parts of sizes {sizes} need 'sections', for the way back")
        if self.sections not in (None, sizes):
            raise ZooError(f"join: sections {self.sections}, but the parts have sizes {sizes}")
        rest = {_drop_dim(tensor.shape, self.dim) for tensor in tensors}
        if len(rest) > 1:
            shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
            raise ZooError(f"join: {shapes} do not fit along dimension {self.dim}")
        return [torch.cat(list(tensors), dim=self.dim)]

    def reverse(self) -> Operation:
        return Split(dim=self.dim, sections=self.sections)


def _drop_dim(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    sizes = list(shape)
    del sizes[dim]
    return tuple(sizes)


class Add(Operation):
    """Sums tensors, small ones spread over the first.

    A sum cannot be taken apart. ``export: zeros`` gives it whole to the first and zeros to the
    others, in the sum's shape or in `shapes` (where -1 is the sum's size).
    """

    name: ClassVar[str] = "add"

    def __init__(
        self,
        *,
        export: Literal["zeros"] | None = None,
        shapes: Sequence[Sequence[Annotated[int, Field(ge=-1)]]] | None = None,
    ) -> None:
        self.export, self.shapes = export, shapes

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        first, *others = tensors
        for other in others:
            if not _broadcasts_to(other.shape, first.shape):
                raise ZooError(f"add: {list(other.shape)} does not spread over {list(first.shape)}")
            first = first + other
        return [first]

    def reverse(self) -> Operation:
        if self.export is None:
            raise ZooError(
                "add cannot be undone; 'export: zeros' gives the sum to the first and zeros to "
                "the others"
            )
        return Unadd(shapes=self.shapes)


def _broadcasts_to(small: Sequence[int], over: Sequence[int]) -> bool:
    tail = over[len(over) - len(small) :]
    return len(small) <= len(over) and all(a in (1, b) for a, b in zip(small, tail, strict=True))


class Unadd(Operation):
    """The sum, and zeros for the other summands."""

    name: ClassVar[str] = "unadd"

    def __init__(self, *, shapes: Sequence[Sequence[int]] | None = None) -> None:
        self.shapes = shapes

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        whole = single_tensor("unadd", tensors)
        shapes = [list(whole.shape)] * (num_outputs - 1) if self.shapes is None else self.shapes
        if len(shapes) != num_outputs - 1:
            raise ZooError(f"add: 'shapes' should list {num_outputs - 1} shapes, not {len(shapes)}")
        if any(len(shape) > whole.ndim for shape in shapes):
            raise ZooError(f"add: 'shapes' has more dimensions than the sum {list(whole.shape)}")
        return [whole, *(whole.new_zeros(_fill_shape(shape, whole)) for shape in shapes)]

    def reverse(self) -> Operation:
        return Add(export="zeros", shapes=self.shapes)


def _fill_shape(shape: Sequence[int], whole: Tensor) -> list[int]:
    sizes = whole.shape[whole.ndim - len(shape) :]
    return [own if size == -1 else size for size, own in zip(shape, sizes, strict=True)]


class WeightNorm(Operation):
    r"""Folds weight normalisation: from g and v to :math:`g\, v / \lVert v \rVert`.

    The norm runs over all dimensions but `dim`. The way back takes v to be the weight itself.
    """

    name: ClassVar[str] = "weight-norm"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int = 0) -> None:
        self.dim = dim

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        if len(tensors) != 2:
            raise ZooError(f"weight-norm takes g and v, but here are {len(tensors)} tensors")
        g, v = tensors
        norm = _norm(v, self.dim)
        if g.numel() != norm.numel():
            raise ZooError(
                f"weight-norm: g {list(g.shape)} has not one number for each of the "
                f"{norm.numel()} along dimension {self.dim} of v {list(v.shape)}"
            )
        return [v * (g.reshape(norm.shape) / norm)]

    def reverse(self) -> Operation:
        return Unfold(dim=self.dim)


class Unfold(Operation):
    """A weight as length and direction: g in the shape that torch gives it, and v."""

    name: ClassVar[str] = "unfold"

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        whole = single_tensor("unfold", tensors)
        return [_norm(whole, self.dim), whole]

    def reverse(self) -> Operation:
        return WeightNorm(dim=self.dim)


def _norm(tensor: Tensor, dim: int) -> Tensor:
    dim_size(tensor, dim)
    others = [d for d in range(tensor.ndim) if d != dim % tensor.ndim]
    return tensor.norm(dim=others, keepdim=True) if others else tensor.abs()
