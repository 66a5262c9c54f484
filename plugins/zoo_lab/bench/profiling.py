"""Which operations of a benchmark take the time."""

from __future__ import annotations

import torch

from zoo_lab.bench.running import prepare_case
from zoo_lab.bench.selection import BenchmarkCase

_WARMUP = 4
"""Calls before the profiled one: functions that are captured as CUDA graphs need three."""
_ROWS = 20


def profile(case: BenchmarkCase, device: torch.device) -> str:
    """Return a table of the operations of one call, on a GPU of its kernels, the longest first."""
    from torch.profiler import ProfilerActivity, profile as record

    benchmark = prepare_case(case, device)
    for _ in range(_WARMUP):
        benchmark.run()
    activities = [ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU]
    with record(activities=activities) as recorded:
        benchmark.run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    order = f"self_{device.type}_time_total"
    table: str = recorded.key_averages().table(sort_by=order, row_limit=_ROWS)
    return table
