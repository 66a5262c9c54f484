"""Benchmarks that violate a law, and the valid one they are based on."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from tiny_benchmark import TinyBenchmark
from torch import Tensor


class CreatesInputsInConstructor(TinyBenchmark):
    def __init__(self, *, size: int = 8) -> None:
        super().__init__(size=size)
        self.vector = torch.randn(size)


class NegativeTarget(TinyBenchmark):
    target: ClassVar[float | None] = -1.0


class UnknownSweep(TinyBenchmark):
    sweep: ClassVar[Mapping[str, Any]] = {"length": (8, 16)}


class InvalidSweepValue(TinyBenchmark):
    sweep: ClassVar[Mapping[str, Any]] = {"size": ("many",)}


class TargetOfUnknownPeer(TinyBenchmark):
    peer_targets: ClassVar[Mapping[str, float]] = {"numpy": 2.0}


class NoPeers(TinyBenchmark):
    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {}


class WrongResult(TinyBenchmark):
    def run(self) -> Tensor:
        return self.vector.abs().sum()


class RunChangesInputs(TinyBenchmark):
    def prepare(self, device: torch.device) -> None:
        super().prepare(device)
        self.expected = self.vector.square().sum()

    def check(self) -> None:
        torch.testing.assert_close(super().run(), self.expected)

    def run(self) -> Tensor:
        return self.vector.mul_(2).sum()


class PeerRaises(TinyBenchmark):
    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"torch": lambda: lambda: self.vector.view(-1, self.size + 1)}


# (law, broken component, valid component)
BROKEN = [
    ("deferred-inputs", CreatesInputsInConstructor, TinyBenchmark),
    ("valid-declaration", NegativeTarget, TinyBenchmark),
    ("valid-declaration", UnknownSweep, TinyBenchmark),
    ("valid-declaration", InvalidSweepValue, TinyBenchmark),
    ("valid-declaration", TargetOfUnknownPeer, TinyBenchmark),
    ("valid-declaration", NoPeers, TinyBenchmark),
    ("checked-results", WrongResult, TinyBenchmark),
    ("checked-results", RunChangesInputs, TinyBenchmark),
    ("peers-run", PeerRaises, TinyBenchmark),
]
