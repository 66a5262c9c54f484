"""Gradients that are computed late, against those of torch's backward pass."""

import pytest
import torch
from torch import nn

from zoo_fast.device.late_gradients import LateGradients
from zoo_transformer.feed_forward import FeedForward

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        yield


class Layers(nn.Module):
    """Joined layers, a ReLU layer and a table that are used twice, and a norm of a sum."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.network, self.norm = FeedForward(dim=4, hidden=3), nn.LayerNorm(4)
        self.table = nn.Embedding(5, 4)

    def forward(self, x):
        from zoo_fast.attention.kernels.training_linear import linear
        from zoo_fast.tokens.kernels.lookup import lookup
        from zoo_fast.transformer.kernels.residual_norm import fused_residual_norm

        rows = lookup(torch.tensor([[1, 3, 3], [4, 0, 1]]), self.table.weight, 0)
        layers = self.first, self.second
        a, b = linear(x, [each.weight for each in layers], [each.bias for each in layers])
        y = self.network(self.network(a) + b + rows @ self.table.weight.T @ self.table.weight)
        out, *_ = fused_residual_norm(x, y, self.first.bias, self.norm, 0.0, None, x.dtype)
        return (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum() + out.square().mean()


@pytest.fixture
def layers():
    torch.manual_seed(0)
    return Layers(), torch.randn(2, 3, 4, requires_grad=True)


def late_gradients(module, x):
    late = LateGradients(None)
    with late.use():
        loss = module(x)
    late.backward(loss)
    return take_gradients(module, x)


def take_gradients(module, x):
    found = {name: each.grad for name, each in (("x", x), *module.named_parameters())}
    module.zero_grad()
    x.grad = None
    return found


def test_gradients_equal_those_of_a_plain_backward_pass(layers):
    module, x = layers
    module(x).backward()
    expected = take_gradients(module, x)
    torch.testing.assert_close(late_gradients(module, x), expected)
    calls = []
    module.network.up.weight.register_hook(lambda grad: calls.append(1))
    torch.testing.assert_close(late_gradients(module, x), expected)
    assert calls == [1]


def test_gradients_outside_of_the_backward_pass_are_rejected(layers):
    module, x = layers
    late = LateGradients(None)
    with late.use(), pytest.raises(RuntimeError, match="cannot be captured"):
        torch.autograd.grad(module(x), x)


def test_inputs_without_gradient(layers):
    module, x = layers
    module(x).backward()
    expected = take_gradients(module, x)
    found = late_gradients(module, x.detach())
    for name in ("first.weight", "second.bias", "network.up.weight"):
        torch.testing.assert_close(found[name], expected[name])
