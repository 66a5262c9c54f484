"""Learning rates and weight decays of the parameters of a training."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from zoo.attention.scorers import ScorerBank
from zoo.errors import ZooError
from zoo.interfaces import Backbone, Decoder, Embedding, Encoder, Optimiser, Position, Weight
from zoo.interfaces.path_pattern import PathPattern
from zoo.spec.initialisation import model_weights
from zoo.spec.training import MAX_STEPS, Training

_INPUTS = (Embedding, Position, Backbone)
_CODERS = (Encoder, Decoder)
Stack = Sequence[nn.Module | nn.Parameter]


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

    .. math:: d^{N - n} \text{ of block } n < N, \qquad d^{N + 1} \text{ of what precedes block } 0

    and 1 of all others, such as an output layer, as in the code of Bao et al. 2022 (BEiT). Blocks
    are the entries of the outermost lists of modules in encoders and decoders, or in the whole
    model if it has neither; each list counts for itself. Embeddings, positions and the
    `input_parts` of encoders and decoders precede them. Their N is that of the longest list in the
    innermost module that contains both.

    Raises:
        ZooError: if the model has no blocks.
    """
    stacks = dict(_model_stacks(model))
    if not stacks:
        raise ZooError("the model has no list of blocks, whose depth 'depth_decay' needs")
    names = {id(weight): name for name, weight in model.named_parameters()}
    factors: dict[str, float] = {}
    for path, module in _input_modules(model):
        longest = _longest_beside(path, stacks)
        factors |= {names[id(weight)]: decay ** (longest + 1) for weight in module.parameters()}
    for stack in stacks.values():
        for index, block in enumerate(stack):
            weights = block.parameters() if isinstance(block, nn.Module) else (block,)
            factors |= {names[id(weight)]: decay ** (len(stack) - index) for weight in weights}
    return factors


def _input_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules that precede the first block, with their paths."""
    for path, module in model.named_modules():
        if isinstance(module, _INPUTS):
            yield path, module
        elif isinstance(module, _CODERS):
            for name in module.input_parts:
                part = getattr(module, name)
                if part is not None:
                    yield f"{path}.{name}" if path else name, part


def _longest_beside(path: str, stacks: Mapping[str, Stack]) -> int:
    """Return the length of the longest list in the innermost module that contains it and a path."""
    lengths: list[int] = []
    while not lengths:
        path = path.rpartition(".")[0]
        parent = f"{path}." if path else ""
        lengths = [len(stack) for name, stack in stacks.items() if name.startswith(parent)]
    return max(lengths)


def _model_stacks(model: nn.Module) -> Iterator[tuple[str, Stack]]:
    """Yield the lists of blocks with their paths."""
    coders = [(path, part) for path, part in model.named_modules() if isinstance(part, _CODERS)]
    found = [stack for path, part in coders for stack in _stacks(part, path)]
    yield from found or _stacks(model)


def _stacks(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, Stack]]:
    """Yield the outermost lists with their paths, except those of inputs.

    The scorers of all heads of an attention are one block.
    """
    for name, child in model.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(child, ScorerBank):
            yield path, [child]
        elif isinstance(child, (nn.ModuleList, nn.ParameterList)) and len(child):
            yield path, list(child)
        elif not isinstance(child, _INPUTS):
            yield from _stacks(child, path)
