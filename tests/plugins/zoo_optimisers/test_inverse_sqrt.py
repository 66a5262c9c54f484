import pytest
from schedule_kit import factors, torch_rates
from transformers import get_inverse_sqrt_schedule

from zoo_optimisers.inverse_sqrt import InverseSqrt


def test_known_values():
    schedule = InverseSqrt(steps=100, warmup=4)
    assert factors(schedule, 4) == [0.25, 0.5, 0.75, 1.0]
    assert schedule.factor(16) == 0.5
    assert schedule.factor(64) == 0.25


def test_the_form_of_the_paper():
    schedule = InverseSqrt(steps=10_000, warmup=4000, dim=512)
    for step in (1, 3999, 4000, 4001, 10_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert schedule.factor(step) == pytest.approx(expected, rel=1e-12)


def test_both_forms_agree_with_the_documented_learning_rate():
    paper, plain = (InverseSqrt(steps=50, warmup=10, dim=dim) for dim in (64, None))
    rates = [(64 * 10) ** -0.5 * factor for factor in factors(plain, 50)]
    assert factors(paper, 50) == pytest.approx(rates, rel=1e-12)


def test_factors_equal_transformers():
    # The first step of transformers is 0.
    rates = torch_rates(lambda o: get_inverse_sqrt_schedule(o, num_warmup_steps=7), 41)
    assert factors(InverseSqrt(steps=40, warmup=7), 40) == pytest.approx(rates[1:], rel=1e-12)
