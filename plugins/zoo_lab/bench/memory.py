"""Peak memory of a function, as torch's allocators report it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import torch


def release_memory(device: torch.device) -> None:
    """Free what is not referenced, and the compiled functions and cached blocks of torch.

    The workspaces of cuBLAS, which torch keeps for each thread and stream, are freed too, so that
    they count in the memory of each function that needs them, on whatever stream it runs.
    """
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


class CudaMemory:
    """The memory that calls of a function allocate besides what was allocated before them.

    What the first call allocates and keeps counts, such as the buffers of a CUDA graph, but not the
    peak of the first call itself, in which kernels are compiled and tuned. The capture of a CUDA
    graph, in a later call, counts: its replays do not use the allocator.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._before = torch.cuda.memory_allocated(device)

    def start(self) -> None:
        """Record the peak from now on; called after the first call."""
        torch.cuda.synchronize(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> int:
        """Return the peak, in bytes."""
        return max(0, torch.cuda.max_memory_allocated(self.device) - self._before)


def cpu_peak(function: Callable[[], Any]) -> int | None:
    """Return the largest number of bytes of tensors on the CPU that a call allocates; None if it
    allocates none, as functions that do not use torch.

    The call is profiled, which takes long if it has many operations.
    """
    from torch._C._profiler import _EventType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        function()
    assert profiled.profiler is not None
    assert profiled.profiler.kineto_results is not None
    events: list[Any] = list(profiled.profiler.kineto_results.experimental_event_tree())
    sizes: list[tuple[int, int]] = []
    while events:
        event = events.pop()
        events += event.children
        if event.tag == _EventType.Allocation:
            sizes.append((event.start_time_ns, event.extra_fields.alloc_size))
    allocated = peak = 0
    for _, size in sorted(sizes):
        allocated += size
        peak = max(peak, allocated)
    return peak or None
