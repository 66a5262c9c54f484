"""Benchmarks for tests of the runner, and results with given times."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from tiny_benchmark import TinyBenchmark

from zoo.interfaces import Entry
from zoo_lab.bench.result import BenchmarkResult, Measurement, PeerResult
from zoo_lab.bench.selection import BenchmarkCase

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


def case(cls: type[TinyBenchmark], **changed: Any) -> BenchmarkCase:
    overrides = tuple(f"{name}={value}" for name, value in changed.items())
    return BenchmarkCase(Entry(cls, "test", "test", "0"), overrides, changed)


def measurement(seconds: float, memory: int | None = None) -> Measurement:
    return Measurement(seconds=seconds, spread=(seconds, seconds), repeats=3, memory=memory)


def result(ours: Measurement | None, /, **values: Any) -> BenchmarkResult:
    """Return a result; `peers` maps names to measurements."""
    peers = [PeerResult(name=n, measurement=m) for n, m in values.pop("peers", {}).items()]
    empty = {"plugin": "test", "summary": "Test.", "params": {}, "device": "cpu"}
    given = {"benchmark": "tiny", **empty, "check": "passed", **values}
    return BenchmarkResult(ours=ours, peers=peers, **given)
