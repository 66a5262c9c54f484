"""The state of torch before, during and after the capture of a CUDA graph."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


@contextlib.contextmanager
def own_workspaces() -> Iterator[None]:
    """Let cuBLAS allocate the workspaces of a capture in the block in the memory of its graph.

    Torch keeps one for each stream, and frees all of them when a model is captured that is compiled
    with 'reduce-overhead'. A graph that was captured with one of these would still write to it.
    """
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Collect no garbage in the block: a graph in it cannot be destroyed during a capture."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def first_cause(error: BaseException) -> BaseException:
    """Return the error that caused others."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def end_failed_capture(pool: Any, state: Tensor) -> None:
    """Restore allocator and random generator, which torch leaves in the state of a capture.

    Capturing nothing ends that state of the generator, which graphs of other functions use too. If
    this fails, the generator gets a new state, and these graphs cannot be replayed.
    """
    device = torch.cuda.current_device()
    with contextlib.suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.zeros(1, device=device)
        torch.rand(1, device=device)
        torch.cuda.set_rng_state(state, device)
    except RuntimeError:
        generator = torch.Generator(f"cuda:{device}")
        generator.set_state(state)
        torch.cuda.default_generators[device].graphsafe_set_state(generator)
