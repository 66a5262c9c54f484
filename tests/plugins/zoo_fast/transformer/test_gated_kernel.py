"""The gate of a feed-forward network in one kernel, against torch in float64."""

import pytest
import torch
import torch.nn.functional as F

from zoo_fast.transformer.feed_forward import GatedFeedForward
from zoo_transformer.feed_forward import FeedForward

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device(DEVICE):
        yield


def test_values_and_gradients_to_the_second_order():
    from zoo_fast.transformer.kernels.gated import silu_product

    leaves = [(3 * torch.randn(2, 700)).requires_grad_() for _ in range(2)]  # two programs
    double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    found, expected = silu_product(*leaves), F.silu(double[0]) * double[1]
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    upper = torch.randn(2, 700)
    first = torch.autograd.grad(found, leaves, upper, retain_graph=True)
    reference = torch.autograd.grad(expected, double, upper.double(), create_graph=True)
    for gradient, other in zip(first, reference, strict=True):
        torch.testing.assert_close(gradient.double(), other, rtol=1e-5, atol=1e-5)
    first = torch.autograd.grad(found, leaves, upper, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
    others = torch.autograd.grad(sum(g.square().sum() for g in reference), double)
    for gradient, other in zip(second, others, strict=True):
        torch.testing.assert_close(gradient.double(), other, rtol=1e-4, atol=1e-4)


def test_reasons():
    device = torch.device(DEVICE)
    gated = FeedForward(dim=4, hidden=6, activation="silu", gated=True)
    assert GatedFeedForward().why_not(gated, device) is None
    for options in ({"activation": "gelu", "gated": True}, {"activation": "silu"}):
        network = FeedForward(dim=4, hidden=6, **options)
        reason = "the network has no gate with SiLU"
        assert GatedFeedForward().why_not(network, device) == reason
