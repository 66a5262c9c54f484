import pytest
import torch
from optimiser_kit import assert_same_steps, scalar_steps

from zoo_optimisers.adadelta import Adadelta


def test_known_values():
    values, w, v, u = [], 1.0, 0.0, 0.0
    for g in (1.0, 2.0):
        v = 0.95 * v + 0.05 * g**2
        delta = ((u + 1e-6) / (v + 1e-6)) ** 0.5 * g
        u = 0.95 * u + 0.05 * delta**2
        w -= delta
        values.append(w)
    assert scalar_steps(Adadelta(), [1.0, 2.0]) == pytest.approx(values, abs=1e-12)
    assert values[0] == pytest.approx(1 - (1e-6 / (0.05 + 1e-6)) ** 0.5)


def test_steps_equal_torch():
    assert_same_steps(
        Adadelta(lr=0.5, rho=0.9, eps=1e-5),
        lambda every, _: torch.optim.Adadelta(every, lr=0.5, rho=0.9, eps=1e-5),
    )
