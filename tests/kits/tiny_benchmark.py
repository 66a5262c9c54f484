"""A minimal benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo_lab.bench.benchmark import Benchmark, Bound


class TinyBenchmark(Benchmark):
    """Sum of the squares of a vector.

    Args:
        size: number of elements.
    """

    name: ClassVar[str] = "tiny"
    device_type: ClassVar[str] = "cpu"
    sweep: ClassVar[Mapping[str, Any]] = {"size": (8, 16)}

    def __init__(self, *, size: int = 8) -> None:
        self.size = size

    def prepare(self, device: torch.device) -> None:
        self.vector = torch.randn(self.size, device=device)

    def check(self) -> None:
        torch.testing.assert_close(self.run(), self.vector.square().sum())

    def run(self) -> Tensor:
        return self.vector @ self.vector

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"torch": lambda: lambda: self.vector.square().sum()}

    def bound(self) -> Bound:
        return Bound(bytes=4 * self.size, operations=2 * self.size)
