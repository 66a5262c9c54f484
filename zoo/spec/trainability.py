"""Which parameters of a model a training changes: those that require a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import nn

from zoo.errors import Problem, ZooError
from zoo.interfaces.path_pattern import select_paths
from zoo.registry.blueprint import Blueprint
from zoo.spec.rate_groups import depth_factors
from zoo.spec.spec import Spec
from zoo.spec.training import Training


def freeze(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze parameters of a model: they get no gradient, and no optimiser changes them.

    `model.train()` leaves modules whose parameters are all frozen in evaluation mode, so their
    dropout is off and their batch norms keep their statistics.

    Args:
        patterns: for the paths of parameters, such as ``encoder.blocks.{0..5}``: ``*`` matches any
            characters, and a path stands for everything below it. A parameter with several paths
            is frozen if one of them matches.

    Returns:
        The paths of the frozen parameters.

    Raises:
        ZooError: a pattern matches nothing, or nothing is left to train.
    """
    if isinstance(patterns, str):
        raise ZooError(f"patterns is '{patterns}'; expected a list of patterns")
    paths = parameter_paths(model)
    selected = select_paths(patterns, paths)
    kept = {id(weight) for weight in model.parameters() if weight.requires_grad}
    if kept and not kept - {id(paths[path]) for path in selected}:
        raise ZooError("all parameters would be frozen, so there is nothing to train")
    for path in selected:
        paths[path].requires_grad_(False)
    model.train(model.training)
    return selected


def parameter_paths(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model by path; one that modules share has several paths."""
    return dict(model.named_parameters(remove_duplicate=False))


def set_trained(model: nn.Module, training: Training, step: int = 0) -> None:
    """Freeze what the section ``train`` freezes after a number of steps, and train the rest."""
    paths = parameter_paths(model)
    frozen = _ids(paths, training.freeze)
    for each in training.unfreeze:
        if step >= each.at:
            frozen -= _ids(paths, each.match)
    scheduled = _ids(paths, training.freeze)
    for weight in paths.values():
        if id(weight) in scheduled:
            weight.requires_grad_(id(weight) not in frozen)
    model.train(model.training)


def last_unfreezing(training: Training) -> int:
    """Return the number of steps after which nothing more is unfrozen."""
    return max((each.at for each in training.unfreeze), default=0)


def _ids(paths: dict[str, nn.Parameter], patterns: Iterable[str]) -> set[int]:
    return {id(paths[path]) for path in select_paths(list(patterns), paths)}


def trained_problems(spec: Spec, model: nn.Module) -> Iterator[Problem]:
    """Yield the patterns of the section ``train`` that do not fit a model on the meta device."""
    section = spec.sections.train
    if section is None:
        return
    training: Training = section.build()
    paths = parameter_paths(model)
    found = list(_pattern_problems(section, "freeze", training.freeze, paths))
    yield from found
    for blueprint in section.params.get("groups", ()):
        yield from _pattern_problems(blueprint, "match", blueprint.params["match"], paths)
    if training.depth_decay is not None:
        try:
            depth_factors(model, training.depth_decay)
        except ZooError as error:
            place = section.places.get("depth_decay")
            yield Problem(str(error), "train.depth_decay", place)
    if isinstance(training.checkpointing, Sequence):
        modules = [name for name, _ in model.named_modules() if name]
        patterns = training.checkpointing
        yield from _pattern_problems(section, "checkpointing", patterns, modules)
    if found:
        return
    frozen = set(select_paths(training.freeze, paths))
    if paths and len({id(p) for p in paths.values()}) == len({id(paths[path]) for path in frozen}):
        message = "all parameters are frozen, so there is nothing to train"
        yield Problem(message, "train.freeze", section.places.get("freeze"))
    for blueprint in section.params.get("unfreeze", ()):
        yield from _unfreeze_problems(blueprint, training, paths, frozen)


def _pattern_problems(
    blueprint: Blueprint[Any], key: str, patterns: Sequence[str], paths: Iterable[str]
) -> Iterator[Problem]:
    """Yield a problem for each pattern that matches nothing, with its place."""
    known = list(paths)
    for index, pattern in enumerate(patterns):
        name = f"{key}[{index}]"
        try:
            select_paths([pattern], known)
        except ZooError as error:
            place = blueprint.places.get(name) or blueprint.places.get(key)
            yield Problem(str(error), f"{blueprint.path}.{name}", place)


def _unfreeze_problems(
    blueprint: Blueprint[Any],
    training: Training,
    paths: dict[str, nn.Parameter],
    frozen: set[str],
) -> Iterator[Problem]:
    at, match = blueprint.params["at"], blueprint.params["match"]
    found = list(_pattern_problems(blueprint, "match", match, paths))
    yield from found
    if not found:
        other = [path for path in select_paths(match, paths) if path not in frozen]
        if other:
            message = f"'{other[0]}' is not frozen; 'unfreeze' lists what 'freeze' has frozen"
            yield Problem(message, f"{blueprint.path}.match", blueprint.places.get("match"))
    if training.steps is not None and at >= training.steps:
        message = f"is {at:,}, but the training has {training.steps:,} steps"
        yield Problem(message, f"{blueprint.path}.at", blueprint.places.get("at"))
