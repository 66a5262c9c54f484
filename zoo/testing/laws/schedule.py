"""Laws of learning rate schedules."""

from __future__ import annotations

import json
import math

from zoo.interfaces import Schedule
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law

_STEPS = range(1, 101)
"""Twice the steps of the training, so that the last steps are after its end."""


def _factors(schedule: Schedule) -> list[float]:
    return [schedule.factor(step) for step in _STEPS]


def valid_factors(config: Configuration) -> None:
    """Factors are finite and not negative, also after the last step; one is not 0."""
    schedule = config.build()
    for evaluations, value in enumerate((1.0, math.inf, 1.0)):
        factors = _factors(schedule)
        for step, factor in zip(_STEPS, factors, strict=True):
            valid = isinstance(factor, float) and math.isfinite(factor) and factor >= 0
            assert valid, f"the factor of step {step} is {factor!r} after {evaluations} evaluations"
        assert max(factors) > 0, "the factors of all steps are 0"
        schedule.observe(value)


def repeatable_factors(config: Configuration) -> None:
    """The factor of a step does not depend on previous calls of `factor`."""
    schedule = config.build()
    factors = _factors(schedule)
    backwards = [schedule.factor(step) for step in reversed(_STEPS)][::-1]
    assert backwards == factors, "the factors differ if they are computed in another order"
    assert config.build().factor(_STEPS[-1]) == factors[-1], "a first factor differs from a later"


def restored_state(config: Configuration) -> None:
    """A schedule restored from its state, which is JSON values, continues with the same factors,
    also if further evaluations do not improve, and a first one is not finite."""
    schedule = config.build()
    for evaluation in range(40):
        restored = config.build()
        try:
            text = json.dumps(dict(schedule.state()), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"the state has other values than JSON: {error}") from None
        restored.restore(json.loads(text))
        assert _factors(restored) == _factors(schedule), (
            f"the factors differ after {evaluation} evaluations"
        )
        for each in (schedule, restored):
            each.observe(1.0 if evaluation else math.inf)
        assert _factors(restored) == _factors(schedule), (
            f"the factors differ after evaluation {evaluation + 1} of the restored schedule"
        )


LAWS = (
    Law("valid-factors", valid_factors),
    Law("repeatable-factors", repeatable_factors),
    Law("restored-state", restored_state),
)
