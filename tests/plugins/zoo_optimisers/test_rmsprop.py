import pytest
import torch
from optimiser_kit import assert_same_steps, scalar_steps

from zoo_optimisers.rmsprop import RmsProp


def test_known_values():
    # v = 0.25, then 0.75 * 0.25 + 0.25 * 4; the buffers are 2 and 0.5 * 2 + 2 / sqrt(v).
    optimiser = RmsProp(lr=0.1, alpha=0.75, eps=0.0, momentum=0.5)
    second = 0.8 - 0.1 * (1.0 + 2.0 / 1.1875**0.5)
    assert scalar_steps(optimiser, [1.0, 2.0]) == pytest.approx([0.8, second], abs=1e-12)


@pytest.mark.parametrize("centered", [False, True])
def test_steps_equal_torch(centered):
    options = {"lr": 1e-4, "alpha": 0.95, "eps": 1e-4, "momentum": 0.9, "centered": centered}
    assert_same_steps(RmsProp(**options), lambda every, _: torch.optim.RMSprop(every, **options))
