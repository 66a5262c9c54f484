"""CUDA graphs: functions that are recorded once and replayed without the cost of launches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Inputs = Mapping[str, Tensor]
Key = tuple[tuple[str, torch.Size, torch.dtype], ...]


@dataclass
class _Recording:
    """The calls with inputs of one shape."""

    calls: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    inputs: dict[str, Tensor] | None = None
    outputs: Any = None


class GraphedFunction:
    """A function of tensors on a CUDA device, recorded as one CUDA graph for each input shape.

    The first calls with a shape run the function as it is, so that kernels are compiled and buffers
    allocated; the next one records it. A replay copies the inputs to fixed tensors and returns the
    fixed outputs of the graph, which the next replay overwrites. The function must not synchronise
    with the device, and what it updates in place (weights, caches) must keep its address.

    If recording fails, the function is called as it is from then on, and ``reason`` says why.

    Args:
        function: called with the inputs, by name.
        warmup: number of calls before the recording.
        max_graphs: number of shapes that are kept; the least recently used is dropped.
        generators: random generators that the function uses besides the device's default one.
    """

    def __init__(
        self,
        function: Callable[[Inputs], Any],
        *,
        warmup: int = 2,
        max_graphs: int = 16,
        generators: Sequence[torch.Generator] = (),
    ) -> None:
        self.function = function
        self.warmup = warmup
        self.max_graphs = max_graphs
        self.generators = generators
        self.reason: str | None = None
        self._recordings: OrderedDict[Key, _Recording] = OrderedDict()
        self._pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def __call__(self, inputs: Inputs) -> Any:
        if self.reason is not None:
            return self.function(inputs)
        recording = self._find(inputs)
        if recording.graph is None and recording.calls >= self.warmup:
            self._record(recording, inputs)
        if recording.graph is None or recording.inputs is None:
            recording.calls += 1
            return self._run_on_side_stream(inputs)
        for name, fixed in recording.inputs.items():
            if fixed is not inputs[name]:
                fixed.copy_(inputs[name], non_blocking=True)
        recording.graph.replay()
        return recording.outputs

    def _find(self, inputs: Inputs) -> _Recording:
        key = tuple((name, t.shape, t.dtype) for name, t in sorted(inputs.items()))
        recording = self._recordings.setdefault(key, _Recording())
        self._recordings.move_to_end(key)
        if len(self._recordings) > self.max_graphs:
            self._recordings.popitem(last=False)
        return recording

    def _run_on_side_stream(self, inputs: Inputs) -> Any:
        """Run the function on the stream of the recording, as warm-up."""
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            outputs = self.function(inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return outputs

    def _record(self, recording: _Recording, inputs: Inputs) -> None:
        fixed = {name: tensor.clone() for name, tensor in inputs.items()}
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                outputs = self.function(fixed)
        except RuntimeError as error:
            self.reason = str(error).splitlines()[0]
            self._recordings.clear()
            return
        recording.graph, recording.inputs, recording.outputs = graph, fixed, outputs
