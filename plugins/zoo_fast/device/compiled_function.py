"""Functions of tensors that Inductor compiles for captured training steps."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor

from zoo.training.local_step import COMPILER_OPTIONS
from zoo_fast.device.triton_support import why_not_triton_on

Function = Callable[..., Sequence[Tensor]]
Key = tuple[tuple[torch.Size, torch.dtype, torch.device], ...]

_LOG = logging.getLogger("zoo.fast")
MAX_COMPILED = 4
"""Number of shapes for which a function is compiled, which takes up to a minute each."""
_OPTIONS = {**COMPILER_OPTIONS, "fallback_random": True, "triton.cudagraphs": False}
"""Options of Inductor: no graphs of its own, and the random numbers of torch."""


class _Active(threading.local):
    """What compiled functions may do in this thread."""

    use = False
    compile = False


_ACTIVE = _Active()


@contextmanager
def use_compiled(*, compile: bool) -> Iterator[None]:
    """Use compiled functions inside the block, in this thread.

    Args:
        compile: whether functions are compiled for shapes for which they are not yet.
    """
    before = _ACTIVE.use, _ACTIVE.compile
    _ACTIVE.use, _ACTIVE.compile = True, compile
    try:
        yield
    finally:
        _ACTIVE.use, _ACTIVE.compile = before


def why_not_compiled(device: torch.device) -> str | None:
    """Return why compiled functions are not used on a device, None if they are."""
    if not _ACTIVE.use:
        return "it is not part of a captured training step"
    return why_not_triton_on(device.type) if device.type == "cuda" else None


class CompiledFunction:
    """Calls of a function of tensors, without weights and other state, that Inductor compiles.

    Inside `use_compiled` it is compiled for each shape of its inputs, with its backward pass, in
    which all inputs of floating dtype can get gradients. Dynamo is not used: the function is traced
    once, there are no guards, and the function modes of a captured step do not matter. The function
    is called as it is if compilation fails, for more than `MAX_COMPILED` shapes, and in all other
    calls. The results can be differentiated once.

    Args:
        name: what is compiled, for the log.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._compiled: dict[Key, Function | None] = {}
        self._is_full = False

    def __call__(self, function: Function, *tensors: Tensor) -> Sequence[Tensor]:
        """Return ``function(*tensors)``, a sequence of new tensors.

        The function is not kept: it computes the same in all calls.
        """
        if not _ACTIVE.use or not torch.is_grad_enabled():
            return function(*tensors)
        # One memory layout, so that a function is compiled once for each shape.
        inputs = [tensor.contiguous() for tensor in tensors]
        key = tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in inputs)
        if _ACTIVE.compile and key not in self._compiled:
            if len(self._compiled) < MAX_COMPILED:
                self._compiled[key] = self._compile(function, inputs)
            elif not self._is_full:
                self._is_full = True
                _LOG.info(
                    "%s is not compiled for inputs of shape %s and others: %d shapes are the limit",
                    self.name,
                    list(inputs[0].shape),
                    MAX_COMPILED,
                )
        compiled = self._compiled.get(key)
        return function(*tensors) if compiled is None else compiled(*inputs)

    def _compile(self, function: Function, inputs: Sequence[Tensor]) -> Function | None:
        shape = list(inputs[0].shape)
        _LOG.info("compiling %s, once for inputs of shape %s", self.name, shape)
        start = time.perf_counter()
        try:
            compiled = compile_function(function, inputs)
        # Compilers fail in many ways, and none of them is a reason to stop a training run.
        except Exception as error:
            _LOG.info("%s is not compiled: %s: %s", self.name, type(error).__name__, error)
            return None
        _LOG.info("compiled %s in %.1f s", self.name, time.perf_counter() - start)
        return compiled


def compile_function(function: Function, inputs: Sequence[Tensor]) -> Function:
    """Return a function that was compiled by Inductor, and has run forward and backward once.

    The backward pass is compiled, and kernels are loaded and tuned, in their first run, which can
    wait for the device: a captured step cannot do that.
    """
    # Imported here, because they take seconds.
    import torch._functorch.config as functorch_config
    from torch._inductor.compile_fx import compile_fx
    from torch.fx.experimental.proxy_tensor import make_fx

    with (
        warnings.catch_warnings(),
        _without_synchronisation_check(),
        functorch_config.patch(donated_buffer=False),  # a second backward pass is possible
    ):
        warnings.simplefilter("ignore")
        examples = [tensor.detach().clone() for tensor in inputs]
        graph = make_fx(function)(*examples)
        leaves = [example.requires_grad_() for example in examples if example.is_floating_point()]
        compiled = cast(Function, compile_fx(graph, examples, config_patches=_OPTIONS))
        outputs = [output for output in compiled(*examples) if output.requires_grad]
        ones = [torch.ones_like(output) for output in outputs]
        torch.autograd.grad(outputs, leaves, ones, allow_unused=True)
    return compiled


@contextmanager
def _without_synchronisation_check() -> Iterator[None]:
    """Do not report operations in the block that wait for the device."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield
        return
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("default")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)
