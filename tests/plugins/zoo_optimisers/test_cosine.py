import pytest
from schedule_kit import factors, torch_rates
from torch.optim.lr_scheduler import CosineAnnealingLR
from transformers import get_cosine_schedule_with_warmup

from zoo_optimisers.cosine import Cosine


def test_known_values():
    schedule = Cosine(steps=4, floor=0.2)
    half_root = 0.5**0.5
    expected = [1.0, 0.6 + 0.4 * half_root, 0.6, 0.6 - 0.4 * half_root]
    assert factors(schedule, 4) == pytest.approx(expected)
    assert schedule.factor(50) == pytest.approx(0.2)
    assert factors(Cosine(steps=8, warmup=4), 5) == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_factors_equal_torch():
    rates = torch_rates(lambda o: CosineAnnealingLR(o, T_max=30, eta_min=0.1), 30)
    assert factors(Cosine(steps=30, floor=0.1), 30) == pytest.approx(rates, rel=1e-9)


def test_factors_equal_transformers():
    # The first step of transformers is 0, so its warm-up is one step later.
    rates = torch_rates(lambda o: get_cosine_schedule_with_warmup(o, 5, 30), 31)
    ours = factors(Cosine(steps=30, warmup=5), 30)
    assert ours[:5] == pytest.approx(rates[1:6], rel=1e-12)
    assert ours[5:] == pytest.approx(rates[5:30], rel=1e-12)
