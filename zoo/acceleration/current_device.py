"""Calls with tensors of a GPU that is not the current one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def is_other_device(device: torch.device) -> bool:
    """Return whether a device is a GPU that is not the current one.

    Kernels of Triton are launched, and CUDA graphs and events recorded, on the current one.
    """
    if device.type != "cuda" or torch.compiler.is_compiling():
        return False
    return device.index is not None and device.index != torch.cuda.current_device()


def with_index(device: torch.device) -> torch.device:
    """Return the device with the index of the current GPU if it has none: each thread has its own
    current one."""
    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", torch.cuda.current_device())


def call_on(device: torch.device, call: Callable[[], Any]) -> Any:
    """Return the result of a call on a GPU; the values of an iterator are computed there too."""
    with torch.cuda.device(device):
        output = call()
    return _iterate_on(device, output) if isinstance(output, Iterator) else output


def _iterate_on(device: torch.device, values: Iterator[Any]) -> Iterator[Any]:
    while True:
        with torch.cuda.device(device):
            try:
                value = next(values)
            except StopIteration:
                return
        yield value
