"""CUDA graphs of functions of a module, kept with the module."""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.interfaces.module_parts import each_part
from zoo_fast.device.cuda_graph import GraphedFunction, Inputs
from zoo_fast.device.graph_pool import GraphPool

MAX_KEPT = 32
"""Functions that are kept for each module; each has graphs for several shapes."""
MAX_SHAPES = 8
"""Shapes that are captured for each function."""
MAX_GRAPHS = 64
"""Graphs that are kept for each module: the driver needs memory for them too."""
MAX_FRACTION = 0.125
"""Fraction of the device's memory that the kept tensors of a module may take."""

Function = Callable[..., tuple[Mapping[str, Tensor], Any]]
"""Returns tensors by name, and a value that is the same for the same shapes and arguments."""
CallKey = tuple[Function, tuple[Hashable, ...]]
"""A function of a module and its arguments after the inputs."""


class KeptGraphs:
    """The graphs of a function of a module, for weights in one place.

    A call can start a graph before it knows that the graph is still right: it must not read memory
    that was freed, so this object knows where the weights were.

    Attributes:
        graphed: the function.
    """

    def __init__(self, graphed: GraphedFunction) -> None:
        self.graphed = graphed
        # Not references to the weights, with which `torch.utils.swap_tensors` fails.
        self._with_parameters: list[weakref.ref[nn.Module]] = []
        self._with_buffers: list[weakref.ref[nn.Module]] = []
        self._places: list[int] | None = None

    def start(self, inputs: Inputs) -> Any:
        """Replay the graph for inputs of this shape and return its outputs; return None without a
        graph, or if a weight is not where it was.

        The outputs are right only if `find` of `ModuleGraphs` returns this object too.
        """
        if self._places is None or self._places != self._find_places():
            return None
        return self.graphed.replay(inputs)

    def run(self, inputs: Inputs, module: nn.Module) -> Any:
        """Call the function or replay a graph, and return the outputs."""
        outputs = self.graphed(inputs)
        if self._places is None:
            parts = each_part(module)
            self._with_parameters = [weakref.ref(part) for part in parts if part._parameters]
            self._with_buffers = [weakref.ref(part) for part in parts if part._buffers]
            self._places = self._find_places()
        return outputs

    def disarm(self) -> None:
        """Let `start` return None until the next `run`."""
        self._places = None

    def _find_places(self) -> list[int]:
        kinds = (self._with_parameters, "_parameters"), (self._with_buffers, "_buffers")
        return [
            weight.data_ptr()
            for references, kind in kinds
            for reference in references
            if (part := reference()) is not None
            for weight in getattr(part, kind).values()
            if weight is not None
        ]


class ModuleGraphs:
    """The graphs of the functions of one module.

    Args:
        module: not kept alive by this object.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = weakref.ref(module)
        self._kept: OrderedDict[tuple[CallKey, Hashable], KeptGraphs] = OrderedDict()
        self._last: dict[CallKey, KeptGraphs] = {}
        self._newest: KeptGraphs | None = None
        self._pool = GraphPool()

    def find(self, call: CallKey, key: Hashable, max_bytes: float = math.inf) -> KeptGraphs:
        """Return the graphs of a call, new or those of a previous call with the same key.

        Args:
            max_bytes: memory of the inputs and outputs of other graphs that are kept.
        """
        full = call, key
        kept = self._kept.get(full)
        if kept is not None and kept is self._newest:
            return kept
        if kept is None:
            kept = self._kept[full] = KeptGraphs(self._make(call))
        self._last[call] = self._newest = kept
        self._kept.move_to_end(full)
        while self._are_too_many(max_bytes):
            (oldest, _), evicted = self._kept.popitem(last=False)
            if self._last.get(oldest) is evicted:
                del self._last[oldest]
        return kept

    def _are_too_many(self, max_bytes: float) -> bool:
        graphed = [kept.graphed for kept in self._kept.values()]
        if len(graphed) == 1:
            return False
        graphs, tensors = sum(each.graphs for each in graphed), sum(each.bytes for each in graphed)
        return len(graphed) > MAX_KEPT or graphs > MAX_GRAPHS or tensors > max_bytes

    def last(self, call: CallKey) -> KeptGraphs | None:
        """Return the graphs that `find` returned last for this call, if they are kept."""
        return self._last.get(call)

    def _make(self, call: CallKey) -> GraphedFunction:
        reference, (function, arguments) = self._module, call

        def run(inputs: Inputs) -> tuple[Mapping[str, Tensor], Any]:
            module = reference()
            assert module is not None
            return function(module, inputs, *arguments)

        return GraphedFunction(run, max_graphs=MAX_SHAPES, pool=self._pool)


_OF_MODULES: weakref.WeakKeyDictionary[nn.Module, ModuleGraphs] = weakref.WeakKeyDictionary()


def max_bytes(device: torch.device) -> float:
    """Return the memory of a device that the kept tensors of a module may take."""
    return MAX_FRACTION * torch.cuda.get_device_properties(device).total_memory


def module_graphs(module: nn.Module) -> ModuleGraphs:
    """Return the graphs that are kept with a module, and deleted with it."""
    found = _OF_MODULES.get(module)
    if found is None:
        found = _OF_MODULES[module] = ModuleGraphs(module)
    return found
