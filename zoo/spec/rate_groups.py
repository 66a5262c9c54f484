"""Learning rates and weight decays of the parameters of a training."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from zoo.errors import ZooError
from zoo.interfaces import Backbone, Embedding, Optimiser, Position, Weight
from zoo.interfaces.path_pattern import PathPattern
from zoo.spec.initialisation import model_weights
from zoo.spec.training import MAX_STEPS, Training

_INPUTS = (Embedding, Position, Backbone)


class Rate(NamedTuple):
    """The factor of the optimiser's learning rate, and a weight decay that replaces its own."""

    factor: float = 1.0
    weight_decay: float | None = None


def build_optimiser(
    training: Training, model: nn.Module, steps: int | None = None
) -> torch.optim.Optimizer:
    """Build the optimiser of a training for the parameters of a model that require a gradient.

    Args:
        steps: number of steps of the training; default: ``train.steps``.

    Raises:
        ZooError: if nothing is trained, or the optimiser has no weight decay to replace.
    """
    blueprint = training.optimiser
    weights = model_weights(model)
    if not weights:
        raise ZooError(
            f"no parameter of this {type(model).__name__} requires a gradient, so there is nothing "
            "to train; use 'model.requires_grad_()'"
        )
    component = blueprint.build(steps=steps or training.steps or MAX_STEPS)
    with blueprint.report_errors("building the optimiser"):
        return _build(component, weights, find_rates(training, model))


def find_rates(training: Training, model: nn.Module) -> dict[str, Rate]:
    """Return the rate of each trained parameter by name, if it is not that of the optimiser.

    The first group that matches a path of the parameter is used; factors of groups and of the
    depth are multiplied.
    """
    depth = {} if training.depth_decay is None else depth_factors(model, training.depth_decay)
    groups = [([PathPattern(text) for text in group.match], group) for group in training.groups]
    paths: dict[int, list[str]] = {}
    for path, weight in model.named_parameters(remove_duplicate=False):
        paths.setdefault(id(weight), []).append(path)
    rates: dict[str, Rate] = {}
    for name, weight in model.named_parameters():
        rate = Rate(depth.get(name, 1.0))
        for patterns, group in groups:
            if any(each.matches(path) for each in patterns for path in paths[id(weight)]):
                rate = Rate(rate.factor * group.lr_factor, group.weight_decay)
                break
        if rate != Rate() and weight.requires_grad:
            rates[name] = rate
    return rates


def _build(
    component: Optimiser, weights: Sequence[Weight], rates: dict[str, Rate]
) -> torch.optim.Optimizer:
    """Build one torch optimiser with the parameter groups of all rates, the default one first."""
    by_rate: dict[Rate, list[Weight]] = {Rate(): []}
    for weight in weights:
        by_rate.setdefault(rates.get(weight.name, Rate()), []).append(weight)
    built: torch.optim.Optimizer | None = None
    for rate, members in by_rate.items():
        if not members:
            continue
        optimiser = _with_decay(component, rate).build(members)
        for group in optimiser.param_groups:
            group["lr"] = group["lr"] * rate.factor
        if built is None:
            built = optimiser
        else:
            for group in optimiser.param_groups:
                built.add_param_group(_named(group))
    assert built is not None
    return built


def _with_decay(component: Optimiser, rate: Rate) -> Optimiser:
    """Return the optimiser with the weight decay of a rate."""
    if rate.weight_decay is None:
        return component
    if not hasattr(component, "weight_decay"):
        raise ZooError(
            f"optimiser '{component.name}' has no weight_decay, which train.groups replaces"
        )
    changed = copy.copy(component)
    vars(changed)["weight_decay"] = rate.weight_decay
    return changed


def _named(group: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter group as `add_param_group` takes it: parameters with their names."""
    names = group.get("param_names")
    if names is None:
        return group
    others = {key: value for key, value in group.items() if key != "param_names"}
    return {**others, "params": list(zip(names, group["params"], strict=True))}


def depth_factors(model: nn.Module, decay: float) -> dict[str, float]:
    r"""Return the factor of the learning rate of each parameter by its depth.

    .. math:: d^{N - n} \text{ of block } n < N, \qquad d^{N + 1} \text{ of embeddings}

    and 1 of all others, such as an output layer, as in the code of Bao et al. 2022 (BEiT). Blocks
    are the entries of the outermost lists of modules; each list counts for itself.

    Raises:
        ZooError: if the model has no blocks.
    """
    stacks = dict(_stacks(model))
    if not stacks:
        raise ZooError("the model has no list of blocks, whose depth 'depth_decay' needs")
    longest = max(map(len, stacks.values()))
    factors: dict[str, float] = {}
    for prefix, module in model.named_modules():
        if isinstance(module, _INPUTS):
            for name, _ in module.named_parameters(prefix):
                factors[name] = decay ** (longest + 1)
    for prefix, stack in stacks.items():
        for index, block in enumerate(stack):
            for name, _ in block.named_parameters(f"{prefix}.{index}"):
                factors[name] = decay ** (len(stack) - index)
    return factors


def _stacks(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    """Yield the outermost lists of modules with their paths, except those of inputs."""
    for name, child in model.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(child, nn.ModuleList):
            yield path, child
        elif not isinstance(child, _INPUTS):
            yield from _stacks(child, path)
