"""Components whose cost grows with a parameter that has no upper limit."""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Blueprint, FromParent
from zoo.testing.tiny import TinyEncoder, TinyScorer


class ListOfPositions(TinyScorer):
    def __init__(
        self, *, query_dim: FromParent[int], key_dim: FromParent[int], length: int = 3
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.positions = list(range(length))


class SumsInC(TinyScorer):
    def __init__(
        self, *, query_dim: FromParent[int], key_dim: FromParent[int], length: int | None = None
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.total = sum(range(length or 0))


class LoopsOverSteps(TinyScorer):
    def __init__(
        self, *, query_dim: FromParent[int], key_dim: FromParent[int], steps: int = 1
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.steps = steps

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores = super().score(query, prepared)
        for _ in range(self.steps):
            scores = scores + 1
        return scores


class AtMostEightSteps(LoopsOverSteps):
    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        steps: Annotated[int, Field(le=8)] = 1,
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim, steps=steps)


class Layer(nn.Module):
    def __init__(self, *, sizes: list[int]) -> None:
        super().__init__()
        self.cells = [[0] * size for size in sizes]


class WithLayer(TinyEncoder):
    def __init__(self, *, input_dim: FromParent[int], layer: Blueprint[Layer]) -> None:
        super().__init__(input_dim=input_dim)
        self.layer = layer.build()


BROKEN = [
    ("bounded-cost", ListOfPositions, TinyScorer),
    ("bounded-cost", SumsInC, TinyScorer),
    ("bounded-cost", LoopsOverSteps, AtMostEightSteps),
    ("bounded-cost", WithLayer, TinyEncoder),
]
