"""A minimal acceleration and the module it serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.interfaces import Acceleration, Call


class TwoLayers(nn.Module):
    """Two linear layers without a bias and without a nonlinearity between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 5, bias=False)
        self.second = nn.Linear(5, 2, bias=False)

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        result: Tensor = self.second(self.first(x)) * scale
        return result


class TinyAcceleration(Acceleration):
    """Multiplies the weights of the two layers first."""

    name: ClassVar[str] = "tiny"
    serves: ClassVar[type[Any]] = TwoLayers
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64)
    differentiable: ClassVar[bool] = True

    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return x @ (target.second.weight @ target.first.weight).T * scale

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        generator = torch.Generator("cpu").manual_seed(0)
        for rows in (1, 4):
            x = torch.randn(rows, 3, generator=generator, dtype=dtype, device="cpu")
            x = x.to(torch.empty(0).device)
            yield Call(TwoLayers().to(dtype), (x,), {"scale": 0.5})
