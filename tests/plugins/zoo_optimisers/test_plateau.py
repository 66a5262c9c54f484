import math

import pytest
import torch
from schedule_kit import torch_rates
from torch.optim.lr_scheduler import ReduceLROnPlateau

from zoo_optimisers.plateau import Plateau


def _observed(schedule, values):
    """Return the factor before each evaluation."""
    found = []
    for value in values:
        found.append(schedule.factor(10))
        schedule.observe(value)
    return found


def test_known_values():
    schedule = Plateau(steps=100, factor=0.5, patience=1)
    values = [3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    assert _observed(schedule, values) == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]


def test_factors_equal_torch():
    generator = torch.Generator().manual_seed(0)
    noise = 0.2 * torch.rand(80, generator=generator)
    values = (3.0 * 0.95 ** torch.arange(80) + noise).tolist()
    options = {"factor": 0.3, "patience": 2, "threshold": 0.05}
    rates = torch_rates(lambda o: ReduceLROnPlateau(o, eps=0.0, **options), 80, values)
    assert len(set(rates)) > 4
    assert _observed(Plateau(steps=100, **options), values) == pytest.approx(rates, rel=1e-12)


def test_negative_values_that_do_not_improve_reduce_the_factor():
    schedule = Plateau(steps=100, factor=0.5, patience=0, threshold=0.1)
    assert _observed(schedule, [-30.0, -30.0, -31.0, -40.0, -40.0]) == [1.0, 1.0, 0.5, 0.25, 0.25]


def test_values_that_are_not_finite_are_not_improvements():
    schedule = Plateau(steps=100, factor=0.5, patience=0)
    assert _observed(schedule, [math.inf, 1.0, math.nan, -math.inf, 0.5]) == [
        1,
        0.5,
        0.5,
        0.25,
        0.125,
    ]


def test_the_floor_and_the_warmup():
    schedule = Plateau(steps=100, factor=0.5, patience=0, floor=0.3, warmup=4)
    assert [schedule.factor(step) for step in (1, 2, 4, 5)] == [0.25, 0.5, 1.0, 1.0]
    for _ in range(4):
        schedule.observe(1.0)
    assert [schedule.factor(step) for step in (1, 9)] == [0.25 * 0.3, 0.3]


def test_a_new_phase_is_not_compared_with_earlier_evaluations():
    schedule = Plateau(steps=10, factor=0.5, patience=1)
    for value in (1.0, 1.1, 1.1):
        schedule.observe(value)
    assert schedule.factor(1) == 0.5
    schedule.observe(1.1)
    schedule.begin_phase()
    for value in (2.0, 1.9, 1.95):
        schedule.observe(value)
    assert schedule.factor(1) == 0.5
