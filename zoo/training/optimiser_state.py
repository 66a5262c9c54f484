"""The state of a torch optimiser as tensors and JSON values by parameter name."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorMeta, TensorReader
from zoo.training.sharding import shard_like

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


Numbers = dict[str, dict[str, Any]]
"""Values that are not tensors, by parameter name and name of the value."""

_PREFIX = "optimiser"


class TensorEntry(NamedTuple):
    """A tensor of a file: its name there, shape and dtype."""

    entry: str
    meta: TensorMeta


def optimiser_tensors(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the tensors of the state, by names such as ``optimiser/exp_avg/decoder.W.weight``."""
    return {
        f"{_PREFIX}/{key}/{name}": value
        for name, key, value in _values(model, optimiser)
        if isinstance(value, Tensor)
    }


def optimiser_numbers(model: nn.Module, optimiser: torch.optim.Optimizer) -> Numbers:
    """Return the values of the state that are not tensors, for JSON."""
    numbers: Numbers = {}
    for name, key, value in _values(model, optimiser):
        if not isinstance(value, Tensor):
            numbers.setdefault(name, {})[key] = value
    return numbers


def _values(model: nn.Module, optimiser: torch.optim.Optimizer) -> Iterator[tuple[str, str, Any]]:
    """Yield parameter name, name of the value, and value."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            yield names[id(parameter)], key, value


def restore_optimiser(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    tensors: TensorReader,
    numbers: Mapping[str, Mapping[str, Any]],
) -> None:
    """Set the state of an optimiser; learning rates and other settings stay as they are.

    Values that the optimiser does not use, such as momenta without momentum, are left out.

    Raises:
        ZooError: if the state belongs to a parameter that the model does not have, or names,
            shapes or dtypes are not those of the optimiser.
    """
    parameters, layout = dict(model.named_parameters()), find_layout(model, optimiser)
    found = _stored_values(tensors, numbers, parameters)
    state = {
        name: {key: value for key, value in values.items() if key in layout.get(name, {})}
        for name, values in found.items()
    }
    described = {
        name: {key: v.meta if isinstance(v, TensorEntry) else v for key, v in values.items()}
        for name, values in state.items()
    }
    check_state(layout, described)
    names = {id(parameter): name for name, parameter in parameters.items()}
    current = optimiser.state_dict()
    order = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    indices = [index for group in current["param_groups"] for index in group["params"]]
    current["state"] = {
        index: {key: _read(value, tensors, parameter) for key, value in state[name].items()}
        for index, parameter in zip(indices, order, strict=True)
        if state.get(name := names[id(parameter)])
    }
    optimiser.load_state_dict(current)


def _stored_values(
    tensors: TensorReader,
    numbers: Mapping[str, Mapping[str, Any]],
    parameters: Mapping[str, Tensor],
) -> dict[str, dict[str, Any]]:
    """Return the stored values by parameter name and key; of tensors their names in the file."""
    state: dict[str, dict[str, Any]] = {
        name: {key: value for key, value in values.items() if value is not None}
        for name, values in numbers.items()
    }
    for entry in tensors.metas:
        prefix, _, rest = entry.partition("/")
        key, _, name = rest.partition("/")
        if prefix == _PREFIX:
            state.setdefault(name, {})[key] = TensorEntry(entry, tensors.metas[entry])
    for name in state:
        if name not in parameters:
            raise ZooError(
                f"the checkpoint has the optimiser state of '{name}', which is not a parameter of "
                "the model"
            )
    return state


def _read(value: Any, tensors: TensorReader, parameter: Tensor) -> Any:
    if not isinstance(value, TensorEntry):
        return value
    return shard_like(tensors.read(value.entry).clone(), parameter)
