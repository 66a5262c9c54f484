"""Linear layers of the same inputs in one product, against calls of the layers."""

import pytest
import torch
from torch import nn

from zoo.attention import joint_linear as module
from zoo.attention.joint_linear import joint_linear


@pytest.mark.parametrize("bias", [True, False])
def test_one_product_equals_the_layers(bias, monkeypatch):
    monkeypatch.setattr(module, "_is_joint", lambda *_: True)
    torch.manual_seed(0)
    layers = [nn.Linear(5, width, bias=bias) for width in (4, 2, 2)]
    x = torch.randn(2, 3, 5, requires_grad=True)
    leaves = [x, *(p for layer in layers for p in layer.parameters())]
    joined, separate = joint_linear(x, layers), [layer(x) for layer in layers]
    torch.testing.assert_close(joined, separate)
    upper = [torch.randn_like(part) for part in separate]
    found = torch.autograd.grad(joined, leaves, upper)
    torch.testing.assert_close(found, torch.autograd.grad(separate, leaves, upper))


def test_layers_are_called_on_the_cpu():
    layers = [nn.Linear(3, 2), nn.Linear(3, 4)]
    calls = []
    layers[1].register_forward_hook(lambda *_: calls.append(1))
    first, second = joint_linear(torch.zeros(1, 3), layers)
    assert (first.shape, second.shape, calls) == ((1, 2), (1, 4), [1])
