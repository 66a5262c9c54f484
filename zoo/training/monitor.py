"""The value that selects the best checkpoint."""

from __future__ import annotations

import random
from collections.abc import Sequence

from zoo.errors import Problem, SpecError, suggest
from zoo.interfaces import Metric
from zoo.spec.spec import Spec
from zoo.spec.training import Training

LOSS = "loss"


def check_monitor(spec: Spec, training: Training) -> None:
    """Raise SpecError if ``train.evaluate.monitor`` is not a result of the evaluations.

    A metric that cannot be computed, for example because its library is missing, raises here,
    before the training.
    """
    monitor = training.evaluate.monitor
    names = [LOSS, *value_names([blueprint.build() for blueprint in spec.sections.metrics])]
    message = None
    if monitor not in names:
        message = f"'{monitor}' is not a result of the evaluation{suggest(monitor, names)}"
    elif monitor != LOSS and training.validation is None:
        message = f"'{monitor}' is computed on validation data; add train.validation"
    if message is not None:
        section = spec.sections.train
        evaluate = section.params.get("evaluate") if section else None
        place = evaluate.places.get("monitor") if evaluate else None
        raise SpecError([Problem(message, "train.evaluate.monitor", place)])


def value_names(metrics: Sequence[Metric]) -> list[str]:
    """Return the names of the values that metrics compute, from small examples."""
    names = []
    for metric in metrics:
        metric.update(*metric.example(3, random.Random(0)))
        names += list(metric.compute())
    return names
