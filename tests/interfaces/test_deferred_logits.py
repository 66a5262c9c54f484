"""Logits that are computed when they are used."""

import torch

from zoo.plugin import DeferredLogits, add_bias, compute_logits, defer_logits


def test_operations_compute_the_logits_once():
    states, weight = torch.randn(2, 3, 4), torch.randn(5, 4)
    logits = DeferredLogits(states, weight, bias=None, padding=None)
    assert (logits.shape, logits.dtype, logits.dim()) == ((2, 3, 5), torch.float32, 3)
    assert logits.numel() == 30
    assert logits._computed is None
    torch.testing.assert_close(logits.softmax(-1), (states @ weight.T).softmax(-1))
    torch.testing.assert_close(torch.cat([logits[0], logits[1]]), (states @ weight.T).flatten(0, 1))
    assert logits.compute() is logits.compute()
    assert type(logits + 1) is torch.Tensor


def test_gradients_flow_through_the_computed_logits():
    states = torch.randn(2, 3, requires_grad=True)
    weight = torch.randn(4, 3, requires_grad=True)
    logits = DeferredLogits(states, weight, bias=None, padding=1)
    logits.square().sum().backward()
    expected = 2 * (states @ weight.T).detach()
    torch.testing.assert_close(states.grad, expected @ weight.detach())
    assert not weight.grad[1].any()
    assert weight.grad[0].any()


def test_logits_are_deferred_only_inside_the_block():
    states, weight, bias = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)
    assert type(compute_logits(states, weight)) is torch.Tensor
    with defer_logits(True):
        logits = add_bias(compute_logits(states, weight), bias)
        with defer_logits(False):
            assert type(compute_logits(states, weight)) is torch.Tensor
    assert isinstance(logits, DeferredLogits)
    torch.testing.assert_close(logits.clone(), states @ weight.T + bias)
