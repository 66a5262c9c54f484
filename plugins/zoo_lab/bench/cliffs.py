"""The law of sweeps over the batch: no step is much slower than that of half the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zoo_lab.bench.bench_table import format_seconds, label
from zoo_lab.bench.result import BenchmarkResult

MAX_GROWTH = 1.5
"""The largest ratio of a time to that of half the batch, if the bound is flat."""
FLAT = 1.1
"""The bound is flat if it grows at most by this ratio."""


def find_cliffs(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield a message for each result that takes more than `MAX_GROWTH` times as long as the one of
    half the batch and the same other parameters, although its bound is flat.

    Results of devices whose bound is not known are not compared.
    """
    by_setting = {_setting(result): result for result in results if result.ours is not None}
    for result in by_setting.values():
        batch = result.params.get("batch")
        if not isinstance(batch, int) or batch % 2:
            continue
        half = by_setting.get(_setting(result, batch // 2))
        if half is None or not _is_flat(half, result):
            continue
        assert result.ours is not None
        assert half.ours is not None
        growth = result.ours.seconds / half.ours.seconds
        if growth > MAX_GROWTH:
            times = f"{format_seconds(result.ours.seconds)} and {format_seconds(half.ours.seconds)}"
            yield f"{label(result)}: {growth:.2f} x the time of batch={batch // 2} ({times})"


def _setting(result: BenchmarkResult, batch: Any = None) -> tuple[str, ...]:
    """Return what identifies a result, with another batch if it is given."""
    params = {**result.params, "batch": batch or result.params.get("batch")}
    values = (f"{name}={value!r}" for name, value in sorted(params.items()))
    return (result.benchmark, result.device, *values)


def _is_flat(half: BenchmarkResult, result: BenchmarkResult) -> bool:
    if half.bound is None or result.bound is None:
        return False
    return result.bound <= FLAT * half.bound
