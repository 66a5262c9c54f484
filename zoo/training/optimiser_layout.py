"""What the state of an optimiser consists of, found with a step that changes nothing."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorMeta

Layout = dict[str, dict[str, TensorMeta | type]]
"""Shape and dtype of a tensor, or the type of another value, by parameter name and key."""


def find_layout(model: nn.Module, optimiser: torch.optim.Optimizer) -> Layout:
    """Return the layout of the state that an optimiser has after its first step.

    The step has gradients of zero and a learning rate of zero, as in torch.distributed.checkpoint,
    so it does not change weights; afterwards state and gradients are as before.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    with _empty_state(optimiser), _zero_gradients(parameters), _zero_rates(optimiser):
        optimiser.step()
        return {
            names[id(parameter)]: {key: _describe(value) for key, value in state.items()}
            for parameter, state in optimiser.state.items()
        }


def check_state(layout: Layout, state: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ZooError if the state of a parameter is not complete or does not have the layout.

    A tensor of another shape would let the kernels of an optimiser read and write foreign memory.
    An empty state is valid: the first gradient of the parameter creates it.

    Args:
        state: tensors, their `TensorMeta`, or other values, by parameter name and key.
    """
    for name, values in state.items():
        for key, expected in layout.get(name, {}).items() if values else ():
            found = _describe(values[key]) if key in values else None
            if not _fits(found, expected):
                raise ZooError(
                    f"the optimiser state '{key}' of '{name}' is {_words(found)} in the checkpoint "
                    f"but {_words(expected)} in the optimiser; restore the settings of the "
                    "optimiser, or start a new run in another folder"
                )


def _describe(value: Any) -> TensorMeta | type:
    if isinstance(value, TensorMeta):
        return value
    return TensorMeta.of(value) if isinstance(value, Tensor) else type(value)


def _fits(found: TensorMeta | type | None, expected: TensorMeta | type) -> bool:
    return found == expected or (found in (int, float) and expected in (int, float))


def _words(what: TensorMeta | type | None) -> str:
    if what is None:
        return "missing"
    if isinstance(what, TensorMeta):
        return f"{str(what.dtype).removeprefix('torch.')} {list(what.shape)}"
    return f"of type {what.__name__}"


@contextlib.contextmanager
def _empty_state(optimiser: torch.optim.Optimizer) -> Iterator[None]:
    before = optimiser.state
    optimiser.state = defaultdict(dict)
    try:
        yield
    finally:
        optimiser.state = before


@contextlib.contextmanager
def _zero_gradients(parameters: list[Tensor]) -> Iterator[None]:
    before = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient


@contextlib.contextmanager
def _zero_rates(optimiser: torch.optim.Optimizer) -> Iterator[None]:
    rates = [group["lr"] for group in optimiser.param_groups]
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = torch.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
    try:
        yield
    finally:
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate
