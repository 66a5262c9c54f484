"""Interface of benchmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch

from zoo.interfaces.component import Component
from zoo_lab.bench.result import Goal


class Bound(NamedTuple):
    """The least work of a computation, from which a lower bound of its time follows.

    Attributes:
        bytes: bytes read and written, each input and each output once.
        operations: floating-point operations.
    """

    bytes: float = 0.0
    operations: float = 0.0


class Benchmark(Component, ABC):
    """Compares a computation of this library with the implementations users could choose instead.

    The constructor's parameters are the sizes and its defaults those of the targets. The inputs are
    sampled in `prepare`, from torch's default generator, so that the computation and its peers get
    the same. With `test_params`, small sizes, it runs on the CPU within a second.

    Laws:
        The constructor creates no tensors. `check` passes on new random inputs, and the computation
        and each installed peer run on the CPU.

    Attributes:
        device_type: the device on which the targets hold, 'cuda' or 'cpu'.
        target: the least ratio of the best peer's time to ours; None if there is no target.
        peer_targets: the least ratio for single peers, by name, besides the best one.
        bound_target: the least ratio of the bound to our time; None if there is no target.
        memory_target: the largest ratio of our peak memory to the best peer's; None if there is no
            target.
        sweep: parameters and the values for which the growth of the cost is shown. A mapping
            instead of a value sets several parameters, for example a smaller batch of long
            sequences.
        packages: distributions of the peers, whose versions are reported.
    """

    kind: ClassVar[str] = "benchmark"
    device_type: ClassVar[str] = "cuda"
    target: ClassVar[float | None] = None
    peer_targets: ClassVar[Mapping[str, float]] = {}
    bound_target: ClassVar[float | None] = None
    memory_target: ClassVar[float | None] = None
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {}
    packages: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def prepare(self, device: torch.device) -> None:
        """Create the inputs and models on the device, as attributes."""

    @abstractmethod
    def check(self) -> None:
        """Raise AssertionError if the measured computation differs from the reference path."""

    @abstractmethod
    def run(self) -> Any:
        """Run the computation once."""

    def timed(self) -> Callable[[], Any]:
        """Return the function to measure: `run`, or a `StepTime`."""
        return self.run

    @abstractmethod
    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        """Return, for each peer, a function that prepares it and returns the function to measure.

        A preparation that raises ImportError is reported as not installed. Peers that cannot run on
        the device of `prepare` are left out.
        """

    def bound(self) -> Bound:
        """Return the least work; by default not known."""
        return Bound()

    def goal(self) -> Goal:
        """Return what these parameters should reach; by default nothing besides the targets."""
        return Goal()

    def items(self) -> tuple[int, str] | None:
        """Return the number and name of the items of a run, such as tokens, to print a rate."""
        return None
