"""The objective, the metrics, the optimiser and the schedule of a spec, built."""

from __future__ import annotations

import torch
from torch import nn

from zoo.errors import ZooError
from zoo.interfaces import Metric, Model, Objective, Schedule
from zoo.spec.providers import require_installed
from zoo.spec.rate_groups import build_optimiser
from zoo.spec.spec import Source, Spec, load_spec
from zoo.spec.training import Training


def objective(spec: Source | Spec | Model) -> Objective:
    """Build the objective of a spec.

    Args:
        spec: name of a spec of a plugin, path, mapping, `Spec`, or a model composed from a spec.

    Raises:
        ZooError: if the spec has no section ``objective``, or its plugin is not installed.
    """
    read = _read(spec, "objective")
    if read.sections.objective is None:
        raise ZooError(f"spec '{read.name}' has no objective; add one: 'objective: cross-entropy'")
    return read.sections.objective.build()


def metrics(spec: Source | Spec | Model) -> list[Metric]:
    """Build the metrics of a spec, in the order of the spec.

    Args:
        spec: name of a spec of a plugin, path, mapping, `Spec`, or a model composed from a spec.

    Raises:
        ZooError: if the spec has no section ``metrics``, or a plugin of them is not installed.
    """
    read = _read(spec, "metrics")
    if not read.sections.metrics:
        raise ZooError(f"spec '{read.name}' has no metrics; add some: 'metrics: [accuracy]'")
    return [blueprint.build() for blueprint in read.sections.metrics]


def optimiser(spec: Source | Spec, model: nn.Module) -> torch.optim.Optimizer:
    """Build the optimiser of a spec for the parameters of a model that require a gradient.

    Learning rates and weight decays are those of ``train.groups`` and ``train.depth_decay``. Move
    the model to its device first.

    Args:
        spec: name of a spec of a plugin, path, mapping or `Spec`, with a section ``train``.
        model: the model, also one that was not composed from the spec.

    Raises:
        ZooError: if the spec has no section ``train``, or no parameter requires a gradient.
    """
    return build_optimiser(_training(spec), model)


def schedule(spec: Source | Spec, *, steps: int | None = None) -> Schedule:
    """Build the learning rate schedule of a spec.

    Multiply the learning rate of each group of the optimiser by ``factor(step)`` before the step;
    the first step is 1.

    Args:
        spec: name of a spec of a plugin, path, mapping or `Spec`, with a section ``train``.
        steps: number of steps of the training; default: ``train.steps``.

    Raises:
        ZooError: if the spec has no ``train.schedule``, or sets ``train.epochs`` and `steps` is not
            given.
    """
    training = _training(spec)
    if training.schedule is None:
        raise ZooError("the section 'train' has no schedule; add one: 'schedule: constant'")
    total = steps or training.steps
    if total is None:
        raise ZooError(
            "the spec sets train.epochs, so the number of steps is not known; pass steps"
        )
    return training.schedule.build(steps=total)


def _training(spec: Source | Spec) -> Training:
    read = _read(spec, "train")
    if read.sections.train is None:
        raise ZooError(f"spec '{read.name}' has no section 'train'")
    return read.sections.train.build()


def _read(spec: Source | Spec | Model, section: str) -> Spec:
    if isinstance(spec, Spec):
        return spec
    if not isinstance(spec, Model):
        return load_spec(spec)
    if spec.spec is None:
        raise ZooError(
            f"this {type(spec).__name__} was not composed from a spec, so it has no {section}; "
            "pass the spec instead of the model"
        )
    require_installed(spec.spec.get(section), spec.providers)
    keys = ("zoo", "name", "model", section)
    return load_spec({key: spec.spec[key] for key in keys if key in spec.spec})
