"""The time and memory of a function."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from zoo_lab.bench.memory import CudaMemory, cpu_peak
from zoo_lab.bench.result import Measurement

_WARMUP = {"cuda": (3, 6)}
_WARMUP_CPU = (1, 3)
"""The least and the largest number of calls before the measured ones. Functions that are compiled
or captured as CUDA graphs need three."""
_WARMUP_SECONDS = 1.0
_SECONDS = 4.0
"""After these times no further call is made, if there were enough."""
_MIN_REPEATS = 3


class StepTime:
    """A function whose steps are measured, without its start.

    The time is that of the longer call without that of the shorter one, divided by the number of
    steps by which they differ. A call is the longer one.

    Args:
        long: the call with more steps, measured first, and its memory.
        short: the same call with fewer steps.
        steps: by how many steps they differ.
    """

    def __init__(self, long: Callable[[], Any], short: Callable[[], Any], steps: int) -> None:
        self.long, self.short, self.steps = long, short, steps

    def __call__(self) -> Any:
        return self.long()


def measure(
    function: Callable[[], Any], device: torch.device, *, repeats: int, cpu_memory: bool
) -> Measurement:
    """Return the median time of calls after a warm-up, and their peak memory.

    Args:
        function: the function to measure.
        device: the device; on a CUDA device, time is measured by events.
        repeats: the number of measured calls; fewer, but at least three, if they take long.
        cpu_memory: measure the memory also on the CPU, by one more call that is profiled.
    """
    if isinstance(function, StepTime):
        long, short = (
            measure(each, device, repeats=repeats, cpu_memory=cpu_memory)
            for each in (function.long, function.short)
        )
        return _step(long, short, function.steps)
    memory = CudaMemory(device) if device.type == "cuda" else None
    _call(function, device)
    if memory is not None:
        memory.start()
    min_calls, max_calls = _WARMUP.get(device.type, _WARMUP_CPU)
    spent = 0.0
    for count in range(1, max_calls):
        if count >= min_calls and spent > _WARMUP_SECONDS:
            break
        spent += _call(function, device)
    seconds: list[float] = []
    while len(seconds) < repeats:
        if len(seconds) >= _MIN_REPEATS and sum(seconds) > _SECONDS:
            break
        seconds.append(_call(function, device))
    peak = None if memory is None else memory.peak()
    if memory is None and cpu_memory:
        peak = cpu_peak(function)
    ordered = sorted(seconds)
    quarter = len(ordered) // 4
    return Measurement(
        seconds=statistics.median(ordered),
        spread=(ordered[quarter], ordered[-1 - quarter]),
        repeats=len(ordered),
        memory=peak,
    )


def _step(long: Measurement, short: Measurement, steps: int) -> Measurement:
    """Return the measurement of one step."""
    low, high = long.spread[0] - short.spread[1], long.spread[1] - short.spread[0]
    return Measurement(
        seconds=max(0.0, long.seconds - short.seconds) / steps,
        spread=(max(0.0, low) / steps, max(0.0, high) / steps),
        repeats=min(long.repeats, short.repeats),
        memory=long.memory,
    )


def _call(function: Callable[[], Any], device: torch.device) -> float:
    """Call a function and return its time in seconds."""
    if device.type != "cuda":
        started = time.perf_counter()
        function()
        return time.perf_counter() - started
    before: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    after: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize(device)
    before.record()
    function()
    after.record()
    torch.cuda.synchronize(device)
    return float(before.elapsed_time(after)) / 1e3
