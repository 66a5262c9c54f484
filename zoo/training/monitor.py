"""The values that select the best checkpoint."""

from __future__ import annotations

import random
from collections.abc import Sequence

from zoo.errors import Problem, SpecError, suggest
from zoo.interfaces import Metric
from zoo.interfaces.metric import LOSS, is_lower_better
from zoo.spec.spec import Spec
from zoo.spec.training import Training


def check_monitor(spec: Spec, training: Training) -> None:
    """Raise SpecError if a value of ``train.evaluate.monitor`` is not a result of the evaluations.

    A metric that cannot be computed, for example because its library is missing, raises here,
    before the training.
    """
    monitor = training.evaluate.monitor
    names = [LOSS, *value_names([blueprint.build() for blueprint in spec.sections.metrics])]
    section = spec.sections.train
    evaluate = section.params.get("evaluate") if section else None
    problems = []
    for i, name in enumerate(monitored := monitored_names(training)):
        if name not in names:
            message = f"'{name}' is not a result of the evaluation{suggest(name, names)}"
        elif name in monitored[:i]:
            message = f"'{name}' is listed twice; remove it"
        else:
            continue
        key = "monitor" if isinstance(monitor, str) else f"monitor[{i}]"
        place = evaluate.places.get(key) if evaluate else None
        problems.append(Problem(message, f"train.evaluate.{key}", place))
    if problems:
        raise SpecError(problems)


def monitored_names(training: Training) -> list[str]:
    """Return the names of the monitored values, one or several."""
    monitor = training.evaluate.monitor
    return [monitor] if isinstance(monitor, str) else list(monitor)


def lower_is_better(training: Training, metrics: Sequence[Metric]) -> dict[str, bool]:
    """Return the monitored values, each with whether lower values are better.

    ``train.evaluate.mode`` decides, then the metric that computes the value.
    """
    mode = training.evaluate.mode
    return {
        name: mode == "min" if mode is not None else is_lower_better(name, metrics)
        for name in monitored_names(training)
    }


def value_names(metrics: Sequence[Metric]) -> list[str]:
    """Return the names of the values that metrics compute, from small examples."""
    names = []
    for metric in metrics:
        metric.update(*metric.example(3, random.Random(0)))
        names += list(metric.compute())
    return names
