"""Logits that are computed when they are used."""

import torch

import zoo
from zoo.plugin import Blueprint
from zoo_fast.training.deferred_logits import DeferredLogits, defer_logits
from zoo_tokens.token import Token
from zoo_transformer.output import Output
from zoo_transformer.output_transform import OutputTransform


def test_operations_compute_the_logits_once():
    states, weight = torch.randn(2, 3, 4), torch.randn(5, 4)
    logits = DeferredLogits(states, weight)
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
    token = zoo.accelerate(Token(vocab=4, dim=3))
    states, bias = torch.randn(2, 3), torch.randn(4)
    assert type(token.unembed(states)) is torch.Tensor
    with defer_logits():
        logits = token.unembed(states) + bias
    assert isinstance(logits, DeferredLogits)
    assert logits._computed is None
    torch.testing.assert_close(logits.clone(), states @ token.table.weight.T + bias)


def test_a_layer_before_the_logits_is_computed():
    transform = Blueprint.of(OutputTransform)
    output = zoo.accelerate(Output(embedding=Token(vocab=4, dim=3), transform=transform))
    states = torch.randn(2, 3)
    expected = output(states)
    with defer_logits():
        logits = output(states)
    torch.testing.assert_close(logits.clone(), expected)


def test_a_second_bias_computes_the_logits():
    states, weight, bias = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)
    logits = DeferredLogits(states, weight) + bias
    assert isinstance(logits, DeferredLogits)
    torch.testing.assert_close(logits + bias, states @ weight.T + 2 * bias)
    assert type(DeferredLogits(states, weight) + 1) is torch.Tensor
    assert type(DeferredLogits(states, weight) + torch.randn(2, 4)) is torch.Tensor
