"""Gradient checkpointing: parts of a model that are computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from zoo.errors import ZooError
from zoo.interfaces.path_pattern import select_paths
from zoo.training.sharding import find_blocks

Context = Callable[[], AbstractContextManager[Any]]


def recompute_parts(
    model: nn.Module, patterns: bool | Sequence[str], *, context: Context = nullcontext
) -> None:
    """Let parts of a model keep only their inputs for the backward pass, which computes them again.

    Results and random numbers do not change (Chen et al. 2016, Training deep nets with sublinear
    memory cost). Accelerations that skip calls of these parts are not used.

    Args:
        patterns: for the paths of modules, of which the outermost are used; True: the repeated
            blocks of the model.
        context: returns the context in which parts are computed again.

    Raises:
        ZooError: if the model has no such parts.
    """
    for part in _find_parts(model, patterns) if patterns else ():
        _recompute(part, context)


def _find_parts(model: nn.Module, patterns: bool | Sequence[str]) -> list[nn.Module]:
    if patterns is True:
        blocks = find_blocks(model)
        if not blocks:
            raise ZooError(
                "train.checkpointing is true, but the model has no blocks that it calls once; name "
                "modules by patterns"
            )
        return blocks
    assert not isinstance(patterns, bool)
    modules = {name: module for name, module in model.named_modules() if name}
    selected = select_paths(patterns, modules)
    outermost = [
        name for name in selected if not any(name.startswith(f"{other}.") for other in selected)
    ]
    return [modules[name] for name in outermost]


def _recompute(part: nn.Module, context: Context) -> None:
    """Replace the forward pass of a part; the method of its class is looked up at each call."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        method = type(part).forward
        if not torch.is_grad_enabled():
            return method(part, *args, **kwargs)
        contexts = partial(_contexts, context)
        return checkpoint(method, part, *args, use_reentrant=False, context_fn=contexts, **kwargs)

    part.forward = forward


def _contexts(
    context: Context,
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    return nullcontext(), context()
