import pytest
from schedule_kit import factors, torch_rates
from transformers import get_constant_schedule_with_warmup

from zoo_optimisers.constant import Constant


def test_known_values():
    assert factors(Constant(steps=3), 3) == [1.0, 1.0, 1.0]
    assert factors(Constant(steps=6, warmup=4), 6) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_factors_equal_transformers():
    # The first step of transformers is 0.
    rates = torch_rates(lambda o: get_constant_schedule_with_warmup(o, 7), 21)
    assert factors(Constant(steps=20, warmup=7), 20) == pytest.approx(rates[1:], rel=1e-12)
