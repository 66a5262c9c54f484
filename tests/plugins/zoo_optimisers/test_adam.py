import pytest
import torch
from optimiser_kit import assert_same_steps, scalar_steps

from zoo_optimisers.adam import Adam


def test_known_values():
    # The L2 term is part of the gradient: 1 + 0.5 * 1 in the first step.
    optimiser = Adam(lr=0.1, betas=(0.5, 0.75), eps=0.0, weight_decay=0.5)
    second_gradient = 2.0 + 0.5 * 0.9
    m = 0.5 * 0.5 * 1.5 + 0.5 * second_gradient
    v = 0.75 * 0.25 * 1.5**2 + 0.25 * second_gradient**2
    second = 0.9 - 0.1 * (m / 0.75) / (v / 0.4375) ** 0.5
    assert scalar_steps(optimiser, [1.0, 2.0]) == pytest.approx([0.9, second], abs=1e-12)


@pytest.mark.parametrize(
    ("decay", "decayed"),
    [
        ("matrices", ("linear", "embedding")),
        ("all", ("linear", "bias", "embedding", "norm", "vector")),
    ],
)
def test_steps_equal_torch(decay, decayed):
    def build(decayed, others):
        groups = [{"params": decayed, "weight_decay": 5e-4}]
        if others:
            groups.append({"params": others, "weight_decay": 0.0})
        return torch.optim.Adam(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-9)

    ours = Adam(lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=5e-4, decay=decay)
    assert_same_steps(ours, build, decayed)
