import pytest
from schedule_kit import factors, torch_rates
from torch.optim.lr_scheduler import MultiStepLR, StepLR

from zoo_optimisers.step import Step


def test_known_values():
    # Halved after 5 steps, then every 2 steps.
    assert factors(Step(every=2, start=5), 9) == [1.0] * 5 + [0.5] * 2 + [0.25] * 2
    assert factors(Step(every=1, start=0), 3) == [0.5, 0.25, 0.125]


def test_factors_equal_torch():
    rates = torch_rates(lambda o: StepLR(o, step_size=4, gamma=0.3), 20)
    assert factors(Step(every=4, factor=0.3), 20) == pytest.approx(rates, rel=1e-12)
    rates = torch_rates(lambda o: MultiStepLR(o, milestones=[10, 13, 16, 19], gamma=0.5), 20)
    assert factors(Step(every=3, start=10), 20) == pytest.approx(rates, rel=1e-12)
