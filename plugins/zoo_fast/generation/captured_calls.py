"""Calls of a module without gradients, captured as CUDA graphs that are kept with the module."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from zoo.acceleration.conditions import has_own_hooks
from zoo.interfaces.module_parts import COMPILED, each_part
from zoo.plugin import Declined
from zoo_fast.device.cuda_graph import GraphedFunction, Inputs
from zoo_fast.device.triton_support import float32_products
from zoo_fast.generation.kept_graphs import Function, max_bytes, module_graphs
from zoo_fast.generation.part_settings import read_settings
from zoo_fast.generation.tensor_copies import copy_tensors

MAX_BYTES = 2**30
"""Larger outputs are not captured, since a graph keeps its outputs."""

_LOCK = threading.RLock()
"""A graph has one set of inputs and outputs for all threads, and a capture changes modes of torch
that are those of all threads. Threads on different streams are not supported."""

_OBSERVED = itemgetter(
    *("training", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
)
"""Returns the attributes that are true, or not empty, if calls of a part are not captured."""
_RECOMPUTATION = "zoo.training.recomputation"
"""The module of forward methods that differ from those of the class with gradients only."""

Inspected = tuple[str | None, Hashable]
"""The reason why calls of a module are not captured, or None, and the key of its graphs."""


def inspect_module(module: nn.Module, device: torch.device) -> Inspected:
    """Return the reason why calls of a module are not captured, or None, and the key of its graphs.

    The key contains what a graph depends on: the place of the weights, the class and the settings
    of each part, and the mode of the kernels.
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
    attributes = [part.__dict__ for part in parts]
    reason = _why_not(parts, attributes)
    if reason is not None:
        return reason, None
    weights: list[Tensor | None] = []
    for part in parts:
        if part._parameters:
            weights += part._parameters.values()
        if part._buffers:
            weights += part._buffers.values()
    places = [(w.data_ptr(), w.dtype, w.shape, w.stride()) for w in weights if w is not None]
    classes = tuple(map(type, parts))
    mode = float32_products(), os.environ.get("ZOO_TRITON")
    return None, (tuple(places), classes, read_settings(module, parts, attributes), mode)


def why_not_parts(module: nn.Module) -> str | None:
    """Return the reason in the parts of a module why its calls are not captured, or None."""
    parts = each_part(module)
    return _why_not(parts, [part.__dict__ for part in parts])


def _why_not(parts: Sequence[nn.Module], attributes: Sequence[dict[str, Any]]) -> str | None:
    """Return the reason why calls of a module with these parts are not captured, or None.

    Args:
        attributes: those of each part.
    """
    if _has_any_global_hook():  # type: ignore[no-untyped-call]
        return "the module has hooks"
    if _is_any_observed(attributes):
        if any(map(has_own_hooks, parts)):
            return "the module has hooks"
        if any(part.training for part in parts):
            return "a part is in training mode"
    if any(own.get("recorders") for own in attributes):
        return "the attention weights or samples are recorded"
    if any("forward" in own for own in attributes):
        replaced = [part for part in parts if "forward" in part.__dict__]
        if not all(map(_is_known, replaced)):
            return "a part has another forward method"
    return None


def _is_any_observed(attributes: Sequence[dict[str, Any]]) -> bool:
    """Whether a part can have hooks or be in training mode, in half of the time of asking each."""
    try:
        return any(chain.from_iterable(map(_OBSERVED, attributes)))
    except KeyError:  # of a traced part
        return True


def _is_known(part: nn.Module) -> bool:
    """Return whether the `forward` of a part itself is that of `torch.compile` or recomputation."""
    forward = part.__dict__["forward"]
    return COMPILED in part._modules or forward.__module__ == _RECOMPUTATION


def call_captured(
    module: nn.Module,
    function: Function,
    inputs: Inputs,
    *arguments: Hashable,
    inspect: Callable[[], Inspected] | None = None,
    borrow: str | None = None,
) -> tuple[dict[str, Tensor], Any]:
    """Return ``function(module, inputs, *arguments)``, from a CUDA graph after the first calls.

    The arguments are those of `replay_captured`. The function is called without a graph if there is
    a reason against it.
    """
    outputs = replay_captured(module, function, inputs, *arguments, inspect=inspect, borrow=borrow)
    if isinstance(outputs, Declined):
        tensors, structure = function(module, inputs, *arguments)
        return dict(tensors), structure
    return outputs


def replay_captured(
    module: nn.Module,
    function: Function,
    inputs: Inputs,
    *arguments: Hashable,
    inspect: Callable[[], Inspected] | None = None,
    borrow: str | None = None,
) -> tuple[dict[str, Tensor], Any] | Declined:
    """Return ``function(module, inputs, *arguments)``, from a CUDA graph after the first calls, or
    decline for the reason that `inspect_module` returns.

    The device already replays the graph of the last call while the module is inspected; its outputs
    are used only if the graph is still the right one. So a call must not draw random numbers or
    change tensors in place, and arguments must contain the limit of indices among the inputs, such
    as a vocabulary size. Gradients have to be disabled.

    Args:
        module: keeps the graphs; they are deleted with it.
        function: not a closure that contains the module.
        inputs: tensors on the device of the module.
        arguments: further arguments; each value has its own graphs, as each shape of the inputs.
        inspect: returns the result of `inspect_module`, with what else the graphs depend on.
        borrow: how the names of outputs start that the next call may overwrite; the others are
            copied.
    """
    device = next(iter(inputs.values())).device
    if device.type != "cuda":
        return Declined(f"the device is '{device.type}', not 'cuda'")
    if GraphedFunction.is_capturing():
        return Declined("another call is captured")
    call = function, arguments
    # Tensors of inference mode could not be overwritten outside of it.
    with _LOCK, torch.inference_mode(False), torch.no_grad():
        graphs = module_graphs(module)
        last = graphs.last(call)
        outputs = None if last is None else last.start(inputs)
        reason, key = inspect_module(module, device) if inspect is None else inspect()
        kept = graphs.find(call, key, max_bytes(device)) if reason is None else None
        if last is not None and last is not kept:
            last.disarm()
            outputs = None
        if kept is None:
            return Declined(str(reason))
        tensors, structure = kept.run(inputs, module) if outputs is None else outputs
        graphed = kept.graphed
        if sum(tensor.nbytes for tensor in tensors.values()) > MAX_BYTES:
            graphed.reason = f"the outputs have more than {MAX_BYTES} bytes"
        return _copy_outputs(tensors, borrow) if graphed.graphs else dict(tensors), structure


def _copy_outputs(tensors: Mapping[str, Tensor], borrow: str | None) -> dict[str, Tensor]:
    if borrow is None:
        return copy_tensors(tensors)
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith(borrow)}
    return {**tensors, **copy_tensors(own)}
