"""CUDA graphs: functions that are captured once and replayed without the cost of launches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from zoo_fast.device.capture_state import (
    end_failed_capture,
    first_cause,
    own_workspaces,
    without_collection,
)
from zoo_fast.device.graph_pool import GraphPool
from zoo_fast.device.kernel_log import log_compiled_kernels
from zoo_fast.device.synchronisation import find_synchronisation

Inputs = Mapping[str, Tensor]
Key = tuple[tuple[str, torch.Size, torch.dtype], ...]

_MAX_SHAPES = 4096
"""Number of shapes whose calls are counted."""
_LOCK = threading.RLock()
"""Warm-up and capture change modes of torch and Python that are those of all threads."""


class MissingMemory(torch.OutOfMemoryError):
    """Raised by a function whose only effect, since memory was missing, was on the default random
    generator."""


@dataclass
class _Capture:
    """The calls with inputs of one shape."""

    calls: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    inputs: dict[str, Tensor] | None = None
    outputs: Any = None

    @property
    def bytes(self) -> int:
        """The memory of the fixed inputs and outputs."""
        leaves = tree_leaves((self.inputs, self.outputs))
        return sum(leaf.nbytes for leaf in leaves if isinstance(leaf, Tensor))

    def replay(self, inputs: Inputs) -> Any:
        assert self.graph is not None
        assert self.inputs is not None
        for name, fixed in self.inputs.items():
            if fixed is not inputs[name] and fixed.numel():  # a copy of nothing takes time too
                fixed.copy_(inputs[name], non_blocking=True)
        self.graph.replay()
        return self.outputs


class _Warmups:
    """Number of warm-up calls that run now, of one thread at a time.

    Their backward passes run in other threads, which have to know it too.
    """

    def __init__(self) -> None:
        self.running = 0

    def __enter__(self) -> None:
        _LOCK.acquire()
        self.running += 1

    def __exit__(self, *error: object) -> None:
        self.running -= 1
        _LOCK.release()


_WARMUPS = _Warmups()


class GraphedFunction:
    """A function of tensors on a CUDA device, captured as one CUDA graph for each input shape.

    The first calls with a shape run the function as it is, so that kernels are compiled and buffers
    allocated; the next one captures it. A replay copies the inputs to fixed tensors and returns the
    fixed outputs of the graph, which the next replay overwrites. What the function updates in place
    (weights, caches) must keep its address. The Python code of the function, and module hooks, run
    only in the first calls and when a shape is captured. Random numbers are the same as without a
    graph.

    Nested capture is disabled during warm-up and capture: `is_capturing` is then true.

    If the function waits for the device, which a graph cannot do, or capture fails, the function
    is called as it is from then on, and ``reason`` says why; so too, without its graphs, when a
    call raises `MissingMemory`. The graphs share one memory pool.

    Args:
        function: called with the inputs, by name, on the device.
        warmup: number of calls before the capture; the last one looks for synchronisations.
        max_graphs: number of shapes that are captured: the most frequent ones.
        generators: random generators that the function uses besides the device's default one.
        device: the device to which inputs are copied; by default they are on the device.
        pool: the memory of the graphs, if other functions share it.

    Attributes:
        bytes: the memory of the fixed inputs and outputs of all graphs.
        is_last_warmup: whether the last call before a capture runs.
        lock: for functions that several threads call: held until the outputs of a call are copied.
    """

    def __init__(
        self,
        function: Callable[[Inputs], Any],
        *,
        warmup: int = 2,
        max_graphs: int = 16,
        generators: Sequence[torch.Generator] = (),
        device: torch.device | None = None,
        pool: GraphPool | None = None,
    ) -> None:
        self.function = function
        self.warmup = warmup
        self.max_graphs = max_graphs
        self.generators = generators
        self.device = device
        self.reason: str | None = None
        self.is_last_warmup = False
        self.lock = threading.RLock()
        self.bytes = 0
        self._captures: dict[Key, _Capture] = {}
        self._pool = GraphPool() if pool is None else pool

    @staticmethod
    def is_capturing() -> bool:
        """Whether a function is captured, or called for the first times before it."""
        return _WARMUPS.running > 0 or torch.cuda.is_current_stream_capturing()

    @property
    def graphs(self) -> int:
        """Number of captured shapes."""
        return sum(capture.graph is not None for capture in self._captures.values())

    def __call__(self, inputs: Inputs) -> Any:
        if self.reason is not None:
            return self.function(self._on_device(inputs))
        capture = self._find(inputs)
        capture.calls += 1
        if capture.graph is None and capture.calls > self.warmup and self._has_room(capture):
            with _LOCK:
                self._capture(capture, inputs)
        return self._call(capture, inputs) if capture.graph is None else capture.replay(inputs)

    def replay(self, inputs: Inputs) -> Any:
        """Return the outputs of the graph for inputs of this shape, None without one."""
        capture = self._captures.get(_key(inputs)) if self.reason is None else None
        if capture is None or capture.graph is None:
            return None
        capture.calls += 1
        return capture.replay(inputs)

    def _call(self, capture: _Capture, inputs: Inputs) -> Any:
        """Call the function; if memory is missing, delete the graphs and call it again."""
        state = torch.cuda.get_rng_state() if self.graphs else None
        try:
            with _WARMUPS if capture.calls <= self.warmup else contextlib.nullcontext():
                return self._run_on_side_stream(inputs, check=capture.calls == self.warmup)
        except MissingMemory:
            if state is None:
                raise
        # The traceback of the error, which is gone now, has references to tensors.
        with _LOCK:
            torch.cuda.synchronize()
            self._delete_graphs("there is not enough memory for graphs of several shapes")
            torch.cuda.empty_cache()
        torch.cuda.set_rng_state(state)
        return self.function(self._on_device(inputs))

    def _delete_graphs(self, reason: str) -> None:
        """Delete all graphs, and call the function as it is from now on."""
        self.reason = reason
        self._captures.clear()
        self.bytes = 0
        self._pool.handle = self._pool.first = None  # of later captures

    def _on_device(self, inputs: Inputs) -> Inputs:
        if self.device is None:
            return inputs
        return {name: t.to(self.device, non_blocking=True) for name, t in inputs.items()}

    def _find(self, inputs: Inputs) -> _Capture:
        key = _key(inputs)
        if len(self._captures) >= _MAX_SHAPES and key not in self._captures:
            self._captures = {k: r for k, r in self._captures.items() if r.graph is not None}
        return self._captures.setdefault(key, _Capture())

    def _has_room(self, capture: _Capture) -> bool:
        """Return whether to capture a shape; drop the graph of a less frequent one if needed."""
        captured = [r for r in self._captures.values() if r.graph is not None]
        if len(captured) < self.max_graphs:
            return True
        rarest = min(captured, key=lambda r: r.calls)
        if rarest.calls >= capture.calls:
            return False
        self.bytes -= rarest.bytes
        rarest.graph = rarest.inputs = rarest.outputs = None
        return True

    def _run_on_side_stream(self, inputs: Inputs, *, check: bool) -> Any:
        """Run the function on the stream of the capture, as warm-up."""
        log_compiled_kernels()
        moved, stream = self._on_device(inputs), self._pool.stream()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                return self._warm_up(moved) if check else self.function(moved)
        finally:  # also after an error: the kernels before it read the inputs
            torch.cuda.current_stream().wait_stream(stream)

    def _warm_up(self, inputs: Inputs) -> Any:
        """Call the function for the last time before it is captured; give graphs up if it waits
        for the device."""
        self.is_last_warmup = True
        try:
            with find_synchronisation() as found:
                outputs = self.function(inputs)
        finally:
            self.is_last_warmup = False
        if found:
            self._delete_graphs(found[0])
        return outputs

    def _capture(self, capture: _Capture, inputs: Inputs) -> None:
        fixed = {name: t.to(self.device or t.device, copy=True) for name, t in inputs.items()}
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        pool = self._pool
        if pool.handle is None:
            torch.cuda.empty_cache()
            pool.handle = torch.cuda.graph_pool_handle()
        state = torch.cuda.get_rng_state()
        place = {"pool": pool.handle, "stream": pool.stream()}
        try:
            with (
                own_workspaces(),
                without_collection(),
                torch.cuda.graph(graph, **place, capture_error_mode="thread_local"),
            ):
                outputs = self.function(fixed)
        except RuntimeError as error:
            handle = pool.handle
            self._delete_graphs(f"capture failed: {str(first_cause(error)).splitlines()[0]}")
            end_failed_capture(handle, state)
            return
        if pool.first is None:
            pool.first = graph
        capture.graph, capture.inputs, capture.outputs = graph, fixed, outputs
        self.bytes += capture.bytes


def _key(inputs: Inputs) -> Key:
    return tuple([(name, t.shape, t.dtype) for name, t in sorted(inputs.items())])
