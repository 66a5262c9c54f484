"""Timing on a CUDA device, shared by the benchmarks of kernels."""

import json
import os
from collections.abc import Callable

import torch

BANDWIDTH = 4.2e12  # bytes per second of a copy on an H200
MATMUL = 789e12  # bfloat16 operations per second on an H200

Row = dict[str, object]


def measure(
    function: Callable[[], object], repeats: int = 20, warm_up: int = 5
) -> dict[str, float]:
    """Return the median milliseconds and the peak memory in MiB of calls of the function."""
    for _ in range(warm_up):
        function()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    peak = torch.cuda.max_memory_allocated() / 2**20
    return {"ms": round(sorted(times)[len(times) // 2], 4), "MiB": round(peak, 1)}


def attempt(rows: list[Row], name: str, function: Callable[[], object], **fields: object) -> None:
    """Measure the function and append a row; an exception is a row too."""
    row: Row = {"name": name, **fields}
    try:
        row |= measure(function)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"[:200]
    rows.append(row)
    print(" | ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Return ||result - expected|| / ||expected||, computed in float64."""
    difference = (result.double() - expected.double()).norm()
    return float(difference / expected.double().norm().clamp(min=1e-30))


def save(name: str, rows: list[Row]) -> None:
    """Write the rows to NAME.json in the folder of the environment variable OUT."""
    path = os.path.join(os.environ.get("OUT", "."), f"{name}.json")
    device = torch.cuda.get_device_name()
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"device": device, "torch": torch.__version__, "rows": rows}, file, indent=1)
    print(f"wrote {path}")
