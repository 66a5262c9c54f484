"""CUDA graphs of functions of a module, kept with the module."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from torch import Tensor, nn

from zoo.interfaces.module_parts import each_part
from zoo_fast.device.cuda_graph import GraphedFunction, Inputs

MAX_KEPT = 4
"""Functions that are kept for each module; each has graphs for several shapes."""
MAX_SHAPES = 8
"""Shapes that are captured for each function."""

Function = Callable[..., tuple[Mapping[str, Tensor], Any]]
"""Returns tensors by name, and a value that is the same for the same shapes and arguments."""


class KeptGraphs:
    """The graphs of a function of a module, for weights in one place.

    Attributes:
        graphed: the function.
    """

    def __init__(self, graphed: GraphedFunction) -> None:
        self.graphed = graphed
        self._weights: list[weakref.ref[Tensor]] = []
        self._places: list[int] | None = None

    def start(self, inputs: Inputs) -> Any:
        """Replay the graph for inputs of this shape and return its outputs, None without one.

        It reads existing memory, since its weights are where they were, but nothing else is known
        of the module: the outputs are to be used only if `find_graphs` returns this object.
        """
        places = [None if (weight := ref()) is None else weight.data_ptr() for ref in self._weights]
        if places != self._places:
            self._places = None
            return None
        return self.graphed.replay(inputs)

    def run(self, inputs: Inputs, module: nn.Module) -> Any:
        """Call the function or replay a graph, and return the outputs."""
        outputs = self.graphed(inputs)
        if self._places is None:
            weights = weights_of(each_part(module))
            self._weights = list(map(weakref.ref, weights))
            self._places = [weight.data_ptr() for weight in weights]
        return outputs

    def stop(self) -> None:
        """Let `start` return None until the next run."""
        self._places = None


_KEPT: weakref.WeakKeyDictionary[nn.Module, OrderedDict[Hashable, KeptGraphs]] = (
    weakref.WeakKeyDictionary()
)


def find_graphs(
    module: nn.Module, function: Function, arguments: tuple[Hashable, ...], key: Hashable
) -> KeptGraphs:
    """Return the graphs of ``function(module, inputs, *arguments)``, new or of a previous call.

    Args:
        key: what the graphs depend on, besides the arguments.
    """
    kept = _KEPT.setdefault(module, OrderedDict())
    full = (function, arguments, key)
    if full not in kept:
        reference = weakref.ref(module)

        def run(inputs: Inputs) -> tuple[Mapping[str, Tensor], Any]:
            found = reference()
            assert found is not None
            return function(found, inputs, *arguments)

        kept[full] = KeptGraphs(GraphedFunction(run, max_graphs=MAX_SHAPES))
    kept.move_to_end(full)
    while len(kept) > MAX_KEPT:
        kept.popitem(last=False)
    return kept[full]


def find_last(
    module: nn.Module, function: Function, arguments: tuple[Hashable, ...]
) -> KeptGraphs | None:
    """Return the graphs that `find_graphs` returned last for these arguments, if they are kept."""
    for full, kept in reversed(_KEPT.get(module, OrderedDict()).items()):
        if full[:2] == (function, arguments):  # type: ignore[index]
            return kept
    return None


def weights_of(parts: list[nn.Module]) -> list[Tensor]:
    """Return the parameters and buffers of parts; in less time than `parameters()`."""
    weights: list[Tensor | None] = []
    for part in parts:
        if part._parameters:
            weights += part._parameters.values()
        if part._buffers:
            weights += part._buffers.values()
    return [weight for weight in weights if weight is not None]
