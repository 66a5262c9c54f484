import pytest
from schedule_kit import factors, torch_rates
from torch.optim.lr_scheduler import ConstantLR, MultiStepLR, SequentialLR

import zoo
from zoo import SpecError, ZooError
from zoo_optimisers.piecewise import Piecewise


def test_known_values():
    # 0.2 for two steps, 1 for three, then 0.5.
    schedule = Piecewise(factors=[0.2, 1.0, 0.5], until=[2, 5])
    assert factors(schedule, 8) == [0.2] * 2 + [1.0] * 3 + [0.5] * 3
    assert factors(Piecewise(factors=[0.3], until=[]), 2) == [0.3, 0.3]


def test_factors_equal_torch():
    def schedule(optimiser):
        low = ConstantLR(optimiser, factor=0.2, total_iters=100)
        halved = MultiStepLR(optimiser, milestones=[3, 6], gamma=0.5)
        return SequentialLR(optimiser, [low, halved], milestones=[4])

    found = factors(Piecewise(factors=[0.2, 1.0, 0.5, 0.25], until=[4, 7, 10]), 14)
    assert found == pytest.approx(torch_rates(schedule, 14), rel=1e-12)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"factors": [1.0, 0.5], "until": []}, "'factors' has 2 values and 'until' 0"),
        ({"factors": [1.0, 0.5, 0.1], "until": [5, 5]}, "must increase, found"),
    ],
)
def test_parameters_that_do_not_fit_are_rejected(params, message):
    with pytest.raises(ZooError, match=message):
        Piecewise(**params)


@pytest.mark.parametrize("factor", [float("inf"), float("nan"), -0.1])
def test_factors_that_are_not_finite_or_negative_are_rejected_at_their_place(factor):
    train = {
        "data": {"type": "plain-text", "files": "a.txt"},
        "optimiser": {"type": "sgd", "lr": 0.1},
        "schedule": {"type": "piecewise", "factors": [1.0, factor], "until": [3]},
        "batch": {"items": 2},
        "steps": 5,
    }
    spec = {"zoo": 1, "name": "phases", "extends": "transformer-tiny", "train": train}
    with pytest.raises(SpecError, match=r"train\.schedule\.factors"):
        zoo.schedule(spec)
