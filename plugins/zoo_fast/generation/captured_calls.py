"""Calls of a module without gradients, captured as CUDA graphs that are kept with the module."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.acceleration.module_hooks import has_own_hooks
from zoo.interfaces.module_parts import each_part
from zoo_fast.device.cuda_graph import GraphedFunction, Inputs
from zoo_fast.device.triton_support import float32_products

MAX_KEPT = 4
"""Functions that are kept for each module; each has graphs for several shapes."""
MAX_SHAPES = 8
"""Shapes that are captured for each function."""
MAX_BYTES = 2**30
"""Larger outputs are not captured, since a graph keeps its outputs."""

Function = Callable[..., tuple[Mapping[str, Tensor], Any]]
"""Returns tensors by name, and a value that is the same for the same shapes and arguments."""
Inspected = tuple[str | None, Hashable]
"""The reason why calls of a module are not captured, or None, and the key of its graphs."""

_KEPT: weakref.WeakKeyDictionary[nn.Module, OrderedDict[Hashable, GraphedFunction]] = (
    weakref.WeakKeyDictionary()
)


def inspect_module(module: nn.Module, device: torch.device) -> Inspected:
    """Return the reason why calls of a module are not captured, or None, and the key of its graphs.

    The key contains what a graph depends on: the place of the weights and the mode of the kernels.
    """
    if device.type != "cuda":
        return f"the device is '{device.type}', not 'cuda'", None
    if os.environ.get("ZOO_CUDA_GRAPHS") == "off":
        return "ZOO_CUDA_GRAPHS is 'off'", None
    if torch.is_autocast_enabled("cuda"):
        return "autocast is enabled", None
    if module.training:
        return "the module is in training mode", None
    parts = each_part(module)
    if any(map(has_own_hooks, parts)):
        return "the module has hooks", None
    weights: list[Tensor | None] = []
    for part in parts:
        if part.__dict__.get("recorders"):
            return "the attention weights or samples are recorded", None
        if part._parameters:
            weights += part._parameters.values()
        if part._buffers:
            weights += part._buffers.values()
    places = tuple([(each.data_ptr(), each.dtype) for each in weights if each is not None])
    mode = float32_products(), os.environ.get("ZOO_TRITON")
    return None, (places, mode)


def call_captured(
    module: nn.Module,
    function: Function,
    inputs: Inputs,
    *arguments: Hashable,
    inspected: Inspected | None = None,
    copy: bool = True,
) -> tuple[dict[str, Tensor], Any]:
    """Return ``function(module, inputs, *arguments)``, from a CUDA graph after the first calls.

    The function is called without a graph if `inspect_module` returns a reason. Gradients have to
    be disabled.

    Args:
        module: keeps the graphs; they are deleted with it.
        function: not a closure that contains the module.
        inputs: tensors on the device of the module.
        arguments: further arguments; each value has its own graphs, as each shape of the inputs.
        inspected: the result of `inspect_module`, if it is known.
        copy: whether the result is copied; otherwise the next call overwrites it.
    """
    device = next(iter(inputs.values())).device
    reason, key = inspected or inspect_module(module, device)
    if reason is not None or torch.cuda.is_current_stream_capturing():
        tensors, structure = function(module, inputs, *arguments)
        return dict(tensors), structure
    graphed = _find(module, function, arguments, key)
    tensors, structure = graphed(inputs)
    if sum(tensor.nbytes for tensor in tensors.values()) > MAX_BYTES:
        graphed.reason = f"the outputs have more than {MAX_BYTES} bytes"
    return copy_tensors(tensors) if copy and graphed.graphs else dict(tensors), structure


def copy_into(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy tensors with one kernel for each dtype."""
    groups: dict[tuple[torch.dtype, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        group = groups.setdefault((target.dtype, source.dtype), ([], []))
        group[0].append(target)
        group[1].append(source)
    for own, others in groups.values():
        if len(own) == 1:
            own[0].copy_(others[0])
        else:
            torch._foreach_copy_(own, others)


def copy_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of tensors."""
    copies = {name: torch.empty_like(tensor) for name, tensor in tensors.items()}
    copy_into(list(copies.values()), list(tensors.values()))
    return copies


def _find(
    module: nn.Module,
    function: Function,
    arguments: tuple[Hashable, ...],
    key: Hashable,
) -> GraphedFunction:
    kept = _KEPT.setdefault(module, OrderedDict())
    full = (function, arguments, key)
    if full not in kept:
        reference = weakref.ref(module)

        def run(inputs: Inputs) -> tuple[Mapping[str, Tensor], Any]:
            found = reference()
            assert found is not None
            return function(found, inputs, *arguments)

        kept[full] = GraphedFunction(run, max_graphs=MAX_SHAPES)
    kept.move_to_end(full)
    while len(kept) > MAX_KEPT:
        kept.popitem(last=False)
    return kept[full]
