"""Gradients of selections, against those of ``torch.where``."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from zoo_fast.training.selections import Selections


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def select(a, b, valid):
    first = torch.where(valid[:, None], a.exp(), b)
    return (a.sin().where(valid[:, None], first) * torch.arange(8.0).view(2, 4)).sum()


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return torch.randn(2, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)


def test_gradients_need_no_further_zeros(inputs):
    valid = torch.tensor([True, False])
    expected = torch.autograd.grad(select(*inputs, valid), inputs)
    with Selections():
        loss = select(*inputs, valid)
    with Names() as names:
        found = torch.autograd.grad(loss, inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert "aten::scalar_tensor" not in names.names
    assert "aten::where.self" in names.names


def test_other_calls_are_left_to_torch(inputs):
    a, b = inputs
    valid = torch.tensor([True, False])
    calls = (
        lambda: torch.where(valid[:, None], a, 0.0),
        lambda: torch.where(valid[:, None], a, b[0]),
        lambda: torch.where(valid.view(2, 1, 1), a, b),
        lambda: torch.where(valid[:, None], a.double(), b),
        lambda: torch.where(valid)[0],
    )
    for call in calls:
        expected = call()
        with Selections():
            found = call()
        torch.testing.assert_close(found, expected)
        assert "_Where" not in type(found.grad_fn).__name__
