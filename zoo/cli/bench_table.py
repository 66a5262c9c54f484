"""Tables of the results of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from zoo.cli.output import format_bytes, print_rows
from zoo.cli.terminal import console

if TYPE_CHECKING:
    from zoo.benchmarking.result import BenchmarkResult, Measurement


def print_results(results: Sequence[BenchmarkResult], *, sweep: bool) -> None:
    """Print the results, those of all peers, and what was not measured.

    Args:
        sweep: print how the cost grows instead of the comparison with the peers.
    """
    measured = [result for result in results if result.ours is not None]
    if sweep:
        _print_growth(measured)
    elif measured:
        _print_comparison(measured)
        _print_peers(measured)
    out = console()
    for result in results:
        if result.problem is not None:
            reason = result.problem if result.check in ("passed", "not run") else result.check
            out.print(f"\n{_label(result)}: {reason}", markup=False)


def summary(result: BenchmarkResult) -> str:
    """Return a result in one line."""
    if result.ours is None:
        return f"{_label(result)}: {result.problem}"
    text = f"{_label(result)}: {format_seconds(result.ours.seconds)}"
    if result.best_peer is None or result.speedup is None:
        return text
    best = result.measured_peers[result.best_peer]
    theirs = f"{result.best_peer} {format_seconds(best.seconds)}"
    return f"{text}, best peer {theirs}, {result.speedup:.2f} x"


def format_seconds(seconds: float) -> str:
    """Return a time with three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _print_comparison(results: Sequence[BenchmarkResult]) -> None:
    time = ("time", "ours", "ratio", "target")
    columns = ("name", "best peer", *time, "memory", *time[1:], "floor", "met")
    rows = [_row(result) for result in results]
    print_rows(columns, rows, no_wrap=columns, right=columns[2:-1])


def _row(result: BenchmarkResult) -> list[str]:
    best = None if result.best_peer is None else result.measured_peers[result.best_peer]
    return [
        _label(result),
        result.best_peer or "",
        _time(best),
        _time(result.ours),
        _ratio(result.speedup),
        _ratio(result.targets.time),
        _memory(best),
        _memory(result.ours),
        _ratio(result.memory_ratio),
        _ratio(result.targets.memory),
        "" if result.floor is None else format_seconds(result.floor),
        ", ".join(f"{name}: {'yes' if met else 'no'}" for name, met in result.met.items()),
    ]


def _print_peers(results: Sequence[BenchmarkResult]) -> None:
    columns = ("name", "peer", "time", "spread", "memory", "items/s", "ratio", "problem")
    rows = [row for result in results for row in _peer_rows(result)]
    console().print()
    print_rows(columns, rows, no_wrap=columns[:-1], right=columns[2:-1])


def _peer_rows(result: BenchmarkResult) -> Iterator[list[str]]:
    assert result.ours is not None
    peers = [(peer.name, peer.measurement, peer.problem or "") for peer in result.peers]
    for name, measurement, problem in [("(ours)", result.ours, ""), *peers]:
        spread = rate = ratio = ""
        if measurement is not None:
            low, high = measurement.spread
            spread = f"{format_seconds(low)} to {format_seconds(high)}"
            ratio = f"{measurement.seconds / result.ours.seconds:.2f} x"
            if result.items is not None:
                rate = f"{result.items[0] / measurement.seconds:,.0f} {result.items[1]}"
        cells = [_time(measurement), spread, _memory(measurement), rate, ratio, problem]
        yield [_label(result), name, *cells]


def _print_growth(results: Sequence[BenchmarkResult]) -> None:
    ours = ("ours", "growth", "memory", "growth")
    columns = ("name", "parameter", *ours, "best peer", "time", "ratio")
    rows = []
    for _, group in groupby(results, key=lambda r: (r.benchmark, *r.changed)):
        previous = None
        for result in group:
            changed = ", ".join(f"{name}={value}" for name, value in result.changed.items())
            time_growth = memory_growth = ""
            if previous is not None:
                time_growth, memory_growth = _growth(result, previous)
            best = None if result.best_peer is None else result.measured_peers[result.best_peer]
            cells = [_time(result.ours), time_growth, _memory(result.ours), memory_growth]
            peer = [result.best_peer or "", _time(best), _ratio(result.speedup)]
            rows.append([result.benchmark, changed, *cells, *peer])
            previous = result
    print_rows(columns, rows, no_wrap=columns, right=(*columns[2:6], *columns[7:]))


def _growth(result: BenchmarkResult, previous: BenchmarkResult) -> tuple[str, str]:
    assert result.ours is not None
    assert previous.ours is not None
    memory = result.ours.memory, previous.ours.memory
    growth = _ratio(result.ours.seconds / previous.ours.seconds)
    return growth, _ratio(memory[0] / memory[1]) if memory[0] and memory[1] else ""


def _label(result: BenchmarkResult) -> str:
    changed = ", ".join(f"{name}={value}" for name, value in result.changed.items())
    return f"{result.benchmark} ({changed})" if changed else result.benchmark


def _time(measurement: Measurement | None) -> str:
    return "" if measurement is None else format_seconds(measurement.seconds)


def _memory(measurement: Measurement | None) -> str:
    if measurement is None or measurement.memory is None:
        return ""
    return format_bytes(measurement.memory)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} x"
