"""The result of a benchmark, as it is written to JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, computed_field

NOT_INSTALLED = "not installed"


class Measurement(BaseModel):
    """The time and memory of a function.

    Attributes:
        seconds: median of the measured calls.
        spread: first and third quartile.
        repeats: number of measured calls.
        memory: peak memory in bytes; None if it is not known.
    """

    seconds: float
    spread: tuple[float, float]
    repeats: int
    memory: int | None


class PeerResult(BaseModel):
    """The measurement of a peer, or the reason why there is none."""

    name: str
    measurement: Measurement | None = None
    problem: str | None = None


class Targets(BaseModel):
    """The targets of a benchmark; see `Benchmark`. The bound is ``floor`` in JSON."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    time: float | None = None
    memory: float | None = None
    bound: float | None = Field(default=None, alias="floor")
    peers: dict[str, float] = {}


class Goal(BaseModel):
    """What the measured parameters should reach, also those that differ from the defaults.

    Attributes:
        seconds: the longest time; None if there is none.
        ratio: the least ratio of the best peer's time to ours; None if there is none.
    """

    seconds: float | None = None
    ratio: float | None = None


class BenchmarkResult(BaseModel):
    """What was measured of one benchmark with one set of parameters.

    Attributes:
        params: all parameters; `changed` are those that differ from the defaults.
        check: 'passed', or why the computation differs from the reference path.
        problem: why the benchmark ended early; None if it did not.
        bound: seconds that the least bytes and operations need, ``floor`` in JSON; None if not
            known.
        items: number and name of the items of a run.
        targets: hold for the default parameters; `goal` holds for those of this result.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    benchmark: str
    plugin: str
    summary: str
    params: dict[str, Any]
    changed: dict[str, Any] = {}
    device: str
    check: str = "not run"
    problem: str | None = None
    ours: Measurement | None = None
    peers: list[PeerResult] = []
    bound: float | None = Field(default=None, alias="floor")
    bound_bytes: float = Field(default=0.0, alias="floor_bytes")
    bound_operations: float = Field(default=0.0, alias="floor_operations")
    items: tuple[int, str] | None = None
    targets: Targets = Targets()
    goal: Goal = Goal()
    versions: dict[str, str] = {}

    @property
    def measured_peers(self) -> dict[str, Measurement]:
        """The measurements of the peers that ran, by name."""
        return {p.name: p.measurement for p in self.peers if p.measurement is not None}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def best_peer(self) -> str | None:
        """The peer with the shortest time."""
        measured = self.measured_peers
        return min(measured, key=lambda name: measured[name].seconds, default=None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup(self) -> float | None:
        """The time of the best peer divided by ours."""
        return None if self.best_peer is None else self._speedup(self.best_peer)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def memory_ratio(self) -> float | None:
        """Our peak memory divided by that of the fastest peer whose memory is known.

        It is measured as 0 if a peer allocates it where torch does not count it, as the CUDA graphs
        of ``torch.compile``.
        """
        known = [peer for peer in self.measured_peers.values() if peer.memory]
        if self.ours is None or self.ours.memory is None or not known:
            return None
        fastest = min(known, key=lambda peer: peer.seconds)
        return self.ours.memory / (fastest.memory or 1)

    @computed_field(alias="floor_ratio")  # type: ignore[prop-decorator]
    @property
    def bound_ratio(self) -> float | None:
        """The bound divided by our time."""
        return None if self.bound is None or self.ours is None else self.bound / self.ours.seconds

    @computed_field  # type: ignore[prop-decorator]
    @property
    def met(self) -> dict[str, bool]:
        """Whether each target that can be compared is met, by its name.

        Targets hold for the default parameters, with all peers that have one.
        """
        goal = self._met_goal()
        if self.changed:
            return goal
        pairs = {
            "time": (self.speedup, self.targets.time),
            "floor": (self.bound_ratio, self.targets.bound),
            **{name: (self._speedup(name), goal) for name, goal in self.targets.peers.items()},
        }
        met = {
            name: value >= goal
            for name, (value, goal) in pairs.items()
            if value is not None and goal is not None
        }
        if self.memory_ratio is not None and self.targets.memory is not None:
            met["memory"] = self.memory_ratio <= self.targets.memory
        return {**met, **goal}

    def _met_goal(self) -> dict[str, bool]:
        compared = []
        if self.ours is not None and self.goal.seconds is not None:
            compared.append(self.ours.seconds <= self.goal.seconds)
        if self.speedup is not None and self.goal.ratio is not None:
            compared.append(self.speedup >= self.goal.ratio)
        return {"goal": all(compared)} if compared else {}

    def _speedup(self, peer: str) -> float | None:
        measured = self.measured_peers.get(peer)
        if self.ours is None or measured is None:
            return None
        return measured.seconds / self.ours.seconds


ResultCallback = Callable[[BenchmarkResult], None]


class BenchmarkReport(BaseModel):
    """The results of one run, and what is needed to repeat it.

    Attributes:
        command: the command line.
        commit: commit of the checkout of the zoo; None if it is not one.
        date: time of the end of the run, in UTC.
        hardware: the device, the processor and its number of cores and threads.
        versions: Python and the packages.
    """

    command: str
    commit: str | None
    date: str
    hardware: dict[str, str | int]
    versions: dict[str, str]
    results: list[BenchmarkResult]
