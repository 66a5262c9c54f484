"""Operations that combine several tensors into one, or split one into several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.errors import ZooError
from zoo_exchange.mapping.operation import Operation, dim_size, single_tensor

SectionSizes = Sequence[Annotated[int, Field(ge=1)]]


class Split(Operation):
    """Splits a tensor along a dimension into equal parts, or into parts of sizes `sections`."""

    name: ClassVar[str] = "split"

    def __init__(self, *, dim: int = 0, sections: SectionSizes | None = None) -> None:
        self.dim, self.sections = dim, None if sections is None else list(sections)

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        tensor = single_tensor("split", tensors)
        size = dim_size(tensor, self.dim)
        if self.sections is None:
            if size % num_outputs:
                raise ZooError(
                    f"split: size {size} is not divisible into {num_outputs} equal parts; "
                    "set 'sections'"
                )
            return list(torch.split(tensor, size // num_outputs, dim=self.dim))
        if sum(self.sections) != size or len(self.sections) != num_outputs:
            raise ZooError(
                f"split: sections {self.sections} should be {num_outputs} sizes with sum {size}, "
                f"for shape {list(tensor.shape)}"
            )
        return list(torch.split(tensor, self.sections, dim=self.dim))

    def inverse(self) -> Operation:
        return Join(dim=self.dim, sections=self.sections)


class Join(Operation):
    """Concatenates tensors along a dimension; parts of unequal size need `sections`."""

    name: ClassVar[str] = "join"

    def __init__(self, *, dim: int = 0, sections: SectionSizes | None = None) -> None:
        self.dim, self.sections = dim, None if sections is None else list(sections)

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        sizes = [dim_size(tensor, self.dim) for tensor in tensors]
        if self.sections is None and len(set(sizes)) > 1:
            raise ZooError(f"join: parts of unequal sizes {sizes} need 'sections' for export")
        if self.sections not in (None, sizes):
            raise ZooError(f"join: sections are {self.sections}, but the parts have sizes {sizes}")
        rest = {_drop_dim(tensor.shape, self.dim) for tensor in tensors}
        if len(rest) > 1:
            shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
            raise ZooError(f"join: shapes {shapes} differ outside dimension {self.dim}")
        return [torch.cat(list(tensors), dim=self.dim)]

    def inverse(self) -> Operation:
        return Split(dim=self.dim, sections=self.sections)


def _drop_dim(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    sizes = list(shape)
    del sizes[dim]
    return tuple(sizes)


class Add(Operation):
    """Sums tensors, broadcasting to the shape of the first.

    ``export: zeros`` exports the sum as the first tensor and zeros as the others, in the shape of
    the sum or in `shapes` (where -1 is the size of the sum).
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
                raise ZooError(
                    f"add: shape {list(other.shape)} does not broadcast to {list(first.shape)}"
                )
            first = first + other
        return [first]

    def inverse(self) -> Operation:
        if self.export is None:
            raise ZooError(
                "add has no inverse; set 'export: zeros' to export the sum as the first tensor "
                "and zeros as the others"
            )
        return Unadd(shapes=self.shapes)


def _broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    tail = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape, tail, strict=True))


class Unadd(Operation):
    """Inverse of `Add`: the sum, and zeros for the other tensors."""

    name: ClassVar[str] = "unadd"

    def __init__(self, *, shapes: Sequence[Sequence[int]] | None = None) -> None:
        self.shapes = shapes

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        total = single_tensor("unadd", tensors)
        shapes = [list(total.shape)] * (num_outputs - 1) if self.shapes is None else self.shapes
        if len(shapes) != num_outputs - 1:
            raise ZooError(f"add: 'shapes' lists {len(shapes)} shapes; expected {num_outputs - 1}")
        if any(len(shape) > total.ndim for shape in shapes):
            raise ZooError(f"add: 'shapes' has more dimensions than the sum {list(total.shape)}")
        return [total, *(total.new_zeros(_resolve_shape(shape, total)) for shape in shapes)]

    def inverse(self) -> Operation:
        return Add(export="zeros", shapes=self.shapes)


def _resolve_shape(shape: Sequence[int], tensor: Tensor) -> list[int]:
    tail = tensor.shape[tensor.ndim - len(shape) :]
    return [actual if size == -1 else size for size, actual in zip(shape, tail, strict=True)]


class WeightNorm(Operation):
    r"""Computes the weight :math:`g\, v / \lVert v \rVert` of weight normalisation from g and v.

    The norm is taken over all dimensions except `dim`. The inverse sets v to the weight itself.
    """

    name: ClassVar[str] = "weight-norm"
    shorthand: ClassVar[str] = "dim"

    def __init__(self, *, dim: int = 0) -> None:
        self.dim = dim

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        if len(tensors) != 2:
            raise ZooError(
                f"weight-norm takes two tensors, g and v, but the rule has {len(tensors)}"
            )
        g, v = tensors
        norm = _norm(v, self.dim)
        if g.numel() != norm.numel():
            raise ZooError(
                f"weight-norm: g {list(g.shape)} should have {norm.numel()} elements, the size of "
                f"dimension {self.dim} of v {list(v.shape)}"
            )
        return [v * (g.reshape(norm.shape) / norm)]

    def inverse(self) -> Operation:
        return WeightNormFactors(dim=self.dim)


class WeightNormFactors(Operation):
    """Inverse of `WeightNorm`: the norm as g, in torch's shape, and the weight as v."""

    name: ClassVar[str] = "weight-norm-factors"
    checks_values: ClassVar[bool] = True

    def __init__(self, *, dim: int) -> None:
        self.dim = dim

    def apply(self, tensors: Sequence[Tensor], num_outputs: int) -> list[Tensor]:
        weight = single_tensor("weight-norm-factors", tensors)
        norm = _norm(weight, self.dim)
        if not norm.is_meta and not norm.all():
            raise ZooError("weight-norm: a norm of the weight is zero, so it has no direction v")
        return [norm, weight]

    def inverse(self) -> Operation:
        return WeightNorm(dim=self.dim)


def _norm(tensor: Tensor, dim: int) -> Tensor:
    dim_size(tensor, dim)
    others = [d for d in range(tensor.ndim) if d != dim % tensor.ndim]
    return tensor.norm(dim=others, keepdim=True) if others else tensor.abs()
