"""Tables of the results of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from zoo.cli.output import format_bytes, print_rows
from zoo.cli.terminal import console

if TYPE_CHECKING:
    from zoo_lab.bench.result import BenchmarkResult, Measurement

_TIME = ("peer's time", "our time", "ratio", "target")
_MEMORY = ("peer's memory", "our memory", "ratio", "at most")
COMPARISON = ("name", "best peer", *_TIME, *_MEMORY, "bound", "targets")
PEERS = ("name", "peer", "time", "spread", "memory", "per second", "ratio", "target", "problem")
_OURS = ("our time", "growth", "our memory", "growth")
_THEIRS = ("best peer", "peer's time", "ratio", "peer's memory")
GROWTH = ("name", "parameter", *_OURS, *_THEIRS, "bound", "goal", "met")


def print_results(results: Sequence[BenchmarkResult], *, sweep: bool) -> None:
    """Print the results, those of all peers, and what was not measured.

    Args:
        sweep: print how the cost grows instead of the comparison with the peers.
    """
    measured = [result for result in results if result.ours is not None]
    if sweep and measured:
        right = {*GROWTH} - {"name", "parameter", "best peer", "goal", "met"}
        print_rows(GROWTH, growth_rows(measured), no_wrap=GROWTH, right=right)
    elif measured:
        right = {*COMPARISON} - {"name", "best peer", "targets"}
        print_rows(COMPARISON, comparison_rows(measured), no_wrap=COMPARISON, right=right)
        console().print()
        right = {*PEERS} - {"name", "peer", "problem"}
        print_rows(PEERS, peer_rows(measured), no_wrap=PEERS[:-1], right=right)
    problems = list(problem_rows(results))
    if problems:
        console().print()
        print_rows(("name", "problem"), problems, no_wrap=("name",))


def summary(result: BenchmarkResult) -> str:
    """Return a result in one line."""
    if result.ours is None:
        return f"{label(result)}: {result.problem}"
    text = f"{label(result)}: {format_seconds(result.ours.seconds)}"
    if result.best_peer is None:
        return text
    theirs = f"{result.best_peer} {_time(_best(result))}"
    return f"{text}, best peer {theirs}, {_ratio(result.speedup)}"


def comparison_rows(results: Sequence[BenchmarkResult]) -> Iterator[list[str]]:
    """Yield a row of COMPARISON for each result."""
    for result in results:
        best, missed = _best(result), [name for name, met in result.met.items() if not met]
        yield [
            label(result),
            result.best_peer or "",
            _time(best),
            _time(result.ours),
            _ratio(result.speedup),
            _ratio(result.targets.time),
            _memory(best),
            _memory(result.ours),
            _ratio(result.memory_ratio),
            _ratio(result.targets.memory),
            "" if result.bound is None else format_seconds(result.bound),
            f"not met: {', '.join(missed)}" if missed else _met(result),
        ]


def peer_rows(results: Sequence[BenchmarkResult]) -> Iterator[list[str]]:
    """Yield a row of PEERS for each computation of the zoo and each of its peers."""
    for result in results:
        assert result.ours is not None
        peers = [(peer.name, peer.measurement, peer.problem or "") for peer in result.peers]
        for name, measurement, problem in [("(ours)", result.ours, ""), *peers]:
            spread = rate = ratio = ""
            if measurement is not None:
                low, high = measurement.spread
                spread = f"{format_seconds(low)} to {format_seconds(high)}"
                ratio = _ratio(measurement.seconds / result.ours.seconds)
                if result.items is not None:
                    rate = f"{result.items[0] / measurement.seconds:,.0f} {result.items[1]}"
            target = _ratio(result.targets.peers.get(name))
            cells = [_time(measurement), spread, _memory(measurement), rate, ratio, target, problem]
            yield [label(result), name, *cells]


def _met(result: BenchmarkResult) -> str:
    if not result.met:
        return ""
    return "met" if result.problem is None else "met by the peers measured"


def growth_rows(results: Sequence[BenchmarkResult]) -> Iterator[list[str]]:
    """Yield a row of GROWTH for each result; growth is relative to the value before."""
    for _, group in groupby(results, key=lambda result: (result.benchmark, *result.changed)):
        previous: Measurement | None = None
        for result in group:
            ours = result.ours
            assert ours is not None
            growth = ["", ""]
            if previous is not None:
                memory = (ours.memory or 0) / (previous.memory or 1)
                growth = [_ratio(ours.seconds / previous.seconds), _ratio(memory or None)]
            yield [
                result.benchmark,
                _changed(result),
                _time(ours),
                growth[0],
                _memory(ours),
                growth[1],
                result.best_peer or "",
                _time(_best(result)),
                _ratio(result.speedup),
                _memory(_best(result)),
                "" if result.bound is None else format_seconds(result.bound),
                _goal(result),
                {True: "yes", False: "no", None: ""}[result.met.get("goal")],
            ]
            previous = ours


def _goal(result: BenchmarkResult) -> str:
    goal, parts = result.goal, list[str]()
    if goal.seconds is not None:
        parts.append(f"at most {format_seconds(goal.seconds)}")
    if goal.ratio is not None:
        parts.append(f"at least {_ratio(goal.ratio)}")
    return ", ".join(parts)


def problem_rows(results: Sequence[BenchmarkResult]) -> Iterator[list[str]]:
    """Yield the name of each result that is not complete, and the reason."""
    for result in results:
        if result.problem is not None:
            failed = result.check not in ("passed", "not run")
            yield [label(result), result.check if failed else result.problem]


def format_seconds(seconds: float) -> str:
    """Return a time with three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _best(result: BenchmarkResult) -> Measurement | None:
    return None if result.best_peer is None else result.measured_peers[result.best_peer]


def label(result: BenchmarkResult) -> str:
    """Return the name of a benchmark and the parameters that differ from the defaults."""
    return f"{result.benchmark} ({_changed(result)})" if result.changed else result.benchmark


def _changed(result: BenchmarkResult) -> str:
    return ", ".join(f"{name}={value}" for name, value in result.changed.items())


def _time(measurement: Measurement | None) -> str:
    return "" if measurement is None else format_seconds(measurement.seconds)


def _memory(measurement: Measurement | None) -> str:
    if measurement is None or measurement.memory is None:
        return ""
    return format_bytes(measurement.memory)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} x"
