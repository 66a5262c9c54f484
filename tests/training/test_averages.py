"""Averages of weights."""

import torch
from torch import nn

from zoo.training.averages import MovingAverage


def test_known_values_of_the_moving_average():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    average = MovingAverage(model, 0.5)
    nn.init.constant_(model.weight, 3.0)
    average.update(1)  # decay 2 / 11
    torch.testing.assert_close(average.averages[0], torch.tensor([[2 / 11 + 3 * 9 / 11]]))
    average.update(100)  # decay 0.5
    expected = (2 / 11 + 3 * 9 / 11 + 3) / 2
    torch.testing.assert_close(average.averages[0], torch.tensor([[expected]]))


def test_the_average_agrees_with_torch():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.9)
    reference = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    reference.update_parameters(model)  # the first call copies
    for step in range(100, 110):  # the decay does not depend on the step here
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(step)
        reference.update_parameters(model)
    for own, other in zip(average.averages, reference.module.parameters(), strict=True):
        torch.testing.assert_close(own, other.detach())


def test_the_weights_are_restored_after_the_block():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.9)
    first = model.weight.clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    second = model.weight.clone()
    with average.applied():
        assert torch.equal(model.weight, first)
    assert torch.equal(model.weight, second)
    assert torch.equal(average.averages[0], first)
