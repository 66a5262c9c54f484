"""CUDA graphs of the recurrence: its many small kernels are launched at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.recurrent.sequence_inputs import SequenceSettings

Function = Callable[[Sequence[Tensor], SequenceSettings], Sequence[Tensor]]

MAX_ELEMENTS = 2**26
"""Number of elements of the tensors from which launches do not matter, and copies would."""
MAX_GRAPHS = 3
"""Number of input shapes for which a graph is kept."""


def run_captured(
    function: Function, tensors: Sequence[Tensor], settings: SequenceSettings
) -> list[Tensor]:
    """Call the function, on a GPU as a CUDA graph for each shape of the tensors.

    It is called directly during the capture of another graph and its warm-up, for large tensors,
    and without Triton.
    """
    if not _can_capture(tensors):
        return list(function(tensors, settings))
    graphed = _graphed(function, settings, tensors[0].device)
    # The graph overwrites its outputs at the next call, which can be that of another thread.
    with graphed.lock:
        return [output.clone() for output in graphed({f"{i:02}": t for i, t in enumerate(tensors)})]


def _can_capture(tensors: Sequence[Tensor]) -> bool:
    return (
        tensors[0].is_cuda
        and why_not_triton(tensors[0]) is None
        and not GraphedFunction.is_capturing()
        and sum(tensor.numel() for tensor in tensors) <= MAX_ELEMENTS
    )


@functools.lru_cache(maxsize=8)
def _graphed(
    function: Function, settings: SequenceSettings, device: torch.device
) -> GraphedFunction:
    def call(inputs: Mapping[str, Tensor]) -> Sequence[Tensor]:
        return function([inputs[name] for name in sorted(inputs)], settings)

    return GraphedFunction(call, max_graphs=MAX_GRAPHS)
