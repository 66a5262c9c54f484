"""Linear layer with ReLU in one kernel, against the modules."""

import pytest
import torch
from torch import nn

import zoo
from zoo_fast.transformer.feed_forward import ReluFeedForward
from zoo_transformer.feed_forward import FeedForward

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device(DEVICE):
        yield


def compare(network, x, tolerance, monkeypatch, create_graph=False):
    zoo.accelerate(network)
    leaves = [x, *network.parameters()]

    def compute():
        out = network(x)
        upper = torch.linspace(-1, 1, out.numel()).view_as(out).to(out.dtype)
        found = torch.autograd.grad(out, leaves, upper, create_graph=create_graph)
        if create_graph:
            found = torch.autograd.grad(sum(g.square().sum() for g in found), leaves[:2])
        return [out, *found]

    assert ReluFeedForward().why_not(network, x.device) is None
    actual = compute()
    monkeypatch.setenv("ZOO_FAST", "off")
    for found, expected in zip(actual, compute(), strict=True):
        assert found.dtype == expected.dtype
        error = (found.double() - expected.double()).norm()
        assert error <= tolerance * expected.double().norm()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(("dim", "hidden", "shape"), [(6, 300, (3, 11)), (1, 1, (1, 1))])
def test_values_and_gradients(dim, hidden, shape, dtype, tolerance, monkeypatch):
    torch.manual_seed(0)
    network = FeedForward(dim=dim, hidden=hidden).to(dtype)
    x = torch.randn(*shape, dim).to(dtype).requires_grad_()
    compare(network, x, tolerance, monkeypatch)


def test_second_derivatives(monkeypatch):
    torch.manual_seed(0)
    network = FeedForward(dim=3, hidden=5)
    compare(network, torch.randn(2, 2, 3, requires_grad=True), 1e-5, monkeypatch, create_graph=True)


def test_autocast(monkeypatch):
    torch.manual_seed(0)
    network = FeedForward(dim=8, hidden=16)
    with torch.autocast(DEVICE, torch.bfloat16):
        compare(network, torch.randn(2, 3, 8, requires_grad=True), 2e-2, monkeypatch)


def test_reference_path_with_hooks_and_other_activations(monkeypatch):
    network, device = zoo.accelerate(FeedForward(dim=3, hidden=5)), torch.device(DEVICE)
    calls = []
    network.up.register_forward_hook(lambda *_: calls.append(1))
    network(torch.zeros(1, 1, 3))
    assert calls == [1]
    reason = "the network is gated, the activation is not ReLU, or there is no bias"
    for params in ({"activation": "gelu"}, {"bias": False}, {"gated": True}):
        other = FeedForward(dim=3, hidden=5, **params)
        assert ReluFeedForward().why_not(other, device) == reason
    network.up = nn.Sequential(nn.Linear(3, 5))
    assert ReluFeedForward().why_not(network, device) == "the layer is not torch's"
