"""Benchmarks for tests of the runner, and results with given times."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from zoo.benchmarking.result import BenchmarkResult, Measurement, PeerResult
from zoo.benchmarking.selection import Case
from zoo.interfaces import Entry
from zoo.registry.component_registry import ComponentRegistry
from zoo.testing.tiny_benchmark import TinyBenchmark

CPU = torch.device("cpu")


class Peers(TinyBenchmark):
    """Peers that work, are not installed, and raise in preparation and in the call."""

    name: ClassVar[str] = "peers"
    peer_targets: ClassVar[Mapping[str, float]] = {"torch": 2.0}
    packages = ("torch", "no-such-package")

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def not_installed() -> Callable[[], Any]:
            import no_such_package

            return no_such_package.run

        def fails() -> Callable[[], Any]:
            raise ValueError("no such kernel\nsecond line")

        return {
            "fails": fails,
            "not installed": not_installed,
            "call fails": lambda: lambda: self.vector.view(-1, self.size + 1),
            **super().peers(),
        }


def case(cls: type[TinyBenchmark], **changed: Any) -> Case:
    registry = ComponentRegistry().with_components([cls], plugin="test")
    overrides = tuple(f"{name}={value}" for name, value in changed.items())
    return Case(Entry(cls, "test", "test", "0"), overrides, changed, registry)


def measurement(seconds: float, memory: int | None = None) -> Measurement:
    return Measurement(seconds=seconds, spread=(seconds, seconds), repeats=3, memory=memory)


def result(ours: Measurement | None, /, **values: Any) -> BenchmarkResult:
    """Return a result; `peers` maps names to measurements."""
    peers = [PeerResult(name=n, measurement=m) for n, m in values.pop("peers", {}).items()]
    empty = {"plugin": "test", "summary": "Test.", "params": {}, "device": "cpu"}
    given = {"benchmark": "tiny", **empty, "check": "passed", **values}
    return BenchmarkResult(ours=ours, peers=peers, **given)
