"""Independent kernels of a CUDA graph on two streams."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch

_T = TypeVar("_T")


def start_beside(function: Callable[[], _T]) -> Callable[[], _T]:
    """Call a function beside what follows, and return a function that waits for it.

    While a CUDA graph is recorded, the function runs on a second stream, so that small kernels can
    use the device together. Otherwise it runs at once: launches would cost more than this gains.
    """
    if not torch.cuda.is_available() or not torch.cuda.is_current_stream_capturing():
        value = function()
        return lambda: value
    current = torch.cuda.current_stream()
    side = _side_stream(torch.cuda.current_device())
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = function()

    def wait() -> _T:
        current.wait_stream(side)
        return result

    return wait


@functools.cache
def _side_stream(device: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
