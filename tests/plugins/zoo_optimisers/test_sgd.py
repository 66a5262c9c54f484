import pytest
import torch
from optimiser_kit import assert_same_steps, scalar_steps

from zoo import ZooError
from zoo_optimisers.sgd import Sgd


def test_known_values():
    assert scalar_steps(Sgd(lr=0.5), [1.0, -1.0]) == [0.5, 1.0]
    # Buffers 1 and 0.5 * 1 + 2.
    assert scalar_steps(Sgd(lr=0.1, momentum=0.5), [1.0, 2.0]) == pytest.approx([0.9, 0.65])
    # Updates 1 + 0.5 * 1 and 2 + 0.5 * 2.5.
    nesterov = Sgd(lr=0.1, momentum=0.5, nesterov=True)
    assert scalar_steps(nesterov, [1.0, 2.0]) == pytest.approx([0.85, 0.525])


@pytest.mark.parametrize("nesterov", [False, True])
def test_steps_equal_torch(nesterov):
    assert_same_steps(
        Sgd(lr=0.1, momentum=0.9, nesterov=nesterov, weight_decay=0.01),
        lambda decayed, others: torch.optim.SGD(
            [{"params": decayed, "weight_decay": 0.01}, {"params": others}],
            lr=0.1,
            momentum=0.9,
            nesterov=nesterov,
        ),
        ("linear", "embedding"),
    )


def test_nesterov_needs_momentum():
    with pytest.raises(ZooError, match="nesterov is true, but momentum is 0"):
        Sgd(lr=0.1, nesterov=True)
