import pytest
from schedule_kit import factors, torch_rates
from torch.optim.lr_scheduler import LinearLR
from transformers import get_linear_schedule_with_warmup

from zoo import ZooError
from zoo_optimisers.linear import Linear


def test_known_values():
    assert factors(Linear(steps=4), 4) == [1.0, 0.75, 0.5, 0.25]
    assert factors(Linear(steps=6, warmup=2, end=0.5), 6) == [0.5, 1.0, 1.0, 0.875, 0.75, 0.625]
    assert Linear(steps=4, end=0.5).factor(9) == 0.5


def test_factors_equal_torch():
    rates = torch_rates(lambda o: LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=30), 30)
    assert factors(Linear(steps=30, end=0.2), 30) == pytest.approx(rates, rel=1e-9)


def test_factors_equal_transformers():
    # The first step of transformers is 0, so its warm-up is one step later.
    rates = torch_rates(lambda o: get_linear_schedule_with_warmup(o, 5, 30), 31)
    ours = factors(Linear(steps=30, warmup=5), 30)
    assert ours[:5] == pytest.approx(rates[1:6], rel=1e-12)
    assert ours[5:] == pytest.approx(rates[5:30], rel=1e-12)


def test_warmup_takes_at_most_all_steps():
    assert factors(Linear(steps=3, warmup=3), 3) == pytest.approx([1 / 3, 2 / 3, 1.0])
    with pytest.raises(ZooError, match="warmup is 4, but the training has 3 steps"):
        Linear(steps=3, warmup=4)
