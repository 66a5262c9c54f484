"""The state of a torch optimiser as tensors and JSON values by parameter name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorReader
from zoo.training.sharding import shard_like

Numbers = dict[str, dict[str, Any]]
"""Values that are not tensors, by parameter name and name of the value."""

_PREFIX = "optimiser"


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

    Raises:
        ZooError: if the state belongs to a parameter that the model does not have.
    """
    parameters = dict(model.named_parameters())
    state: dict[str, dict[str, Any]] = {name: dict(values) for name, values in numbers.items()}
    for entry in tensors.metas:
        prefix, _, rest = entry.partition("/")
        key, _, name = rest.partition("/")
        if prefix == _PREFIX:
            if name not in parameters:
                raise ZooError(
                    f"the checkpoint has the optimiser state of '{name}', which is not a "
                    "parameter of the model"
                )
            value = tensors.read(entry).clone()
            state.setdefault(name, {})[key] = shard_like(value, parameters[name])
    names = {id(parameter): name for name, parameter in parameters.items()}
    current = optimiser.state_dict()
    order = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    indices = [index for group in current["param_groups"] for index in group["params"]]
    current["state"] = {
        index: state[names[id(parameter)]]
        for index, parameter in zip(indices, order, strict=True)
        if names[id(parameter)] in state
    }
    optimiser.load_state_dict(current)
