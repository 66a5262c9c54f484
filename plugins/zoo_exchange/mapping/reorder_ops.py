"""Operations that reorder the rows of a weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.errors import ZooError
from zoo_exchange.mapping.operation import Operation, dim_size

RotaryLayout = Literal["halves", "interleaved"]


class Gates(Operation):
    """Reorders the gates of a recurrent cell: ``{theirs: ifgo, ours: ifog}``."""

    name: ClassVar[str] = "gates"

    def __init__(
        self, *, theirs: str | Sequence[str], ours: str | Sequence[str], dim: int = 0
    ) -> None:
        self.theirs, self.ours, self.dim = list(theirs), list(ours), dim
        if sorted(self.theirs) != sorted(self.ours) or len(set(self.ours)) < len(self.ours):
            raise ZooError(
                f"gates: 'theirs' ({', '.join(self.theirs)}) and 'ours' ({', '.join(self.ours)}) "
                "should list the same gates, each once"
            )

    def apply_one(self, tensor: Tensor) -> Tensor:
        size = dim_size(tensor, self.dim)
        if size % len(self.ours):
            raise ZooError(f"gates: size {size} is not divisible by {len(self.ours)} gates")
        order = torch.tensor([self.theirs.index(g) for g in self.ours], device=tensor.device)
        dim = self.dim % tensor.ndim
        gates = torch.unflatten(tensor, dim, (len(self.ours), size // len(self.ours)))
        return gates.index_select(dim, order).flatten(dim, dim + 1)

    def inverse(self) -> Operation:
        return Gates(theirs=self.ours, ours=self.theirs, dim=self.dim)

    def __str__(self) -> str:
        return f"gates {''.join(self.theirs)} -> {''.join(self.ours)}"


class Rotary(Operation):
    """Reorders the pairs of features that rotary positions rotate, within each head.

    A pair is two adjacent features, as in the paper (``interleaved``), or the same index in both
    halves of the head (``halves``).
    """

    name: ClassVar[str] = "rotary"

    def __init__(
        self,
        *,
        heads: Annotated[int, Field(ge=1)],
        theirs: RotaryLayout,
        ours: RotaryLayout,
        dim: int = 0,
    ) -> None:
        self.heads, self.theirs, self.ours, self.dim = heads, theirs, ours, dim

    def apply_one(self, tensor: Tensor) -> Tensor:
        size, dim = dim_size(tensor, self.dim), self.dim % tensor.ndim
        if size % (2 * self.heads):
            raise ZooError(
                f"rotary: size {size} is not divisible into {self.heads} heads of even width"
            )
        if self.theirs == self.ours:
            return tensor
        half = size // self.heads // 2
        pairs = (half, 2) if self.theirs == "interleaved" else (2, half)
        split = torch.unflatten(tensor, dim, (self.heads, *pairs))
        return split.transpose(dim + 1, dim + 2).flatten(dim, dim + 2)

    def inverse(self) -> Operation:
        return Rotary(heads=self.heads, theirs=self.ours, ours=self.theirs, dim=self.dim)

    def __str__(self) -> str:
        return f"rotary {self.theirs} -> {self.ours}"
