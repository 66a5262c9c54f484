"""Gradients of weights that are used several times, against those of a plain backward pass."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import zoo
from zoo.training.local_step import LossModule
from zoo_fast.device.late_gradients import LateGradients
from zoo_fast.training import weight_products
from zoo_fast.training.repeated_weights import RepeatedWeights, repeated_weights
from zoo_fast.training.weight_products import WeightProducts


class Recurrence(nn.Module):
    """Cells over four steps, and layers that use whole, transposed and partial weights."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4)
        self.table, self.once = nn.Embedding(5, 4), nn.Linear(4, 4)
        self.halves = nn.Parameter(torch.randn(8, 4))

    def forward(self, tokens):
        h = c = torch.zeros(len(tokens), 4)
        losses = []
        for x in self.table(tokens).unbind(1):
            h, c = self.lstm(x, (h, c))
            h = self.rnn(x, self.gru(x, h))
            h = torch.tanh(h @ self.halves[:4].T + F.linear(h, self.halves[4:]))
            logits = self.once(h) if not losses else h @ self.table.weight.T
            losses.append(logits.logsumexp(-1).square().mean())
        return torch.stack(losses).sum()


@pytest.fixture
def module():
    torch.manual_seed(0)
    return Recurrence()


TOKENS = torch.tensor([[1, 3, 3, 2], [4, 0, 1, 1], [2, 2, 0, 4]])


def late_gradients(module, *inputs):
    """Return the gradients, and the number of uses of each weight."""
    late = LateGradients(None)
    products = WeightProducts(late)
    with late.use(), RepeatedWeights(products):
        loss = module(*inputs)
    uses = sorted(weight.uses for weight in products._weights.values())
    late.backward(loss)
    return take_gradients(module), uses


def take_gradients(module):
    found = {name: each.grad for name, each in module.named_parameters()}
    module.zero_grad()
    return found


def plain_gradients(module, *inputs):
    module(*inputs).backward()
    return take_gradients(module)


def count_products(monkeypatch):
    calls, addmm = [], torch.addmm
    monkeypatch.setattr(torch, "addmm", lambda *a, **k: calls.append(1) or addmm(*a, **k))
    return calls


def test_a_repeated_weight_gets_its_gradient_in_one_product(module, monkeypatch):
    expected = plain_gradients(module, TOKENS)
    calls = count_products(monkeypatch)
    found, uses = late_gradients(module, TOKENS)
    torch.testing.assert_close(found, expected)
    # two weights of each cell, two halves of one, and the table as output layer
    assert uses == [1, 3, *[4] * 8]
    assert len(calls) == 9


def test_rows_are_multiplied_when_they_need_more_memory_than_the_weight(module, monkeypatch):
    expected = plain_gradients(module, TOKENS)
    monkeypatch.setattr(weight_products, "MIN_BYTES", 0)
    calls = count_products(monkeypatch)
    found, _ = late_gradients(module, TOKENS)
    torch.testing.assert_close(found, expected)
    assert len(calls) > 9


def test_gradients_are_added_to_those_of_a_previous_pass(module):
    expected = plain_gradients(module, TOKENS)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    found, _ = late_gradients(module, TOKENS)
    torch.testing.assert_close(found, {name: grad + 1 for name, grad in expected.items()})


def test_frozen_weights_and_weights_with_hooks(module):
    module.lstm.weight_hh.requires_grad_(False)
    module.gru.bias_ih.requires_grad_(False)
    calls = []
    module.rnn.weight_ih.register_hook(lambda grad: calls.append(1))
    expected = plain_gradients(module, TOKENS)
    found, _ = late_gradients(module, TOKENS)
    torch.testing.assert_close(found, expected)
    assert found["lstm.weight_hh"] is None
    assert calls == [1, 1]


def test_an_unused_output_and_an_unused_parameter(module):
    def loss(tokens):
        module.once(torch.ones(2, 4))
        for _ in range(2):
            module.rnn(torch.ones(2, 4))  # not part of the loss
        return module.rnn(torch.ones(2, 4)).sum()

    loss(TOKENS).backward()
    expected = take_gradients(module)
    late = LateGradients(None)
    with RepeatedWeights(WeightProducts(late)):
        result = loss(TOKENS)
    late.backward(result)
    found = take_gradients(module)
    torch.testing.assert_close(found, expected)
    assert found["once.weight"] is None


def test_expanded_weights_and_autocast_are_left_to_torch(module):
    late = LateGradients(None)
    products = WeightProducts(late)
    x, row = torch.randn(3, 4), nn.Parameter(torch.randn(1, 4))
    with RepeatedWeights(products), torch.autocast("cpu", torch.bfloat16):
        module.once(x)
    with RepeatedWeights(products):
        F.linear(x, row.expand(5, 4))
    assert not products._weights


def test_second_derivatives_in_the_forward_pass(module):
    x = torch.randn(3, 4, requires_grad=True)

    def penalty(x):
        y = torch.tanh(module.once(torch.tanh(module.once(x)))).sum()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        return y + grad.square().sum()

    penalty(x).backward()
    expected = take_gradients(module)
    late = LateGradients(None)
    with RepeatedWeights(WeightProducts(late)):
        loss = penalty(x)
    late.backward(loss)
    torch.testing.assert_close(take_gradients(module), expected)


def test_a_compiled_module_is_called_as_it_is(module):
    def replaced():
        with repeated_weights(module, LateGradients(None)):
            return "Repeated" in type(F.linear(torch.ones(1, 4), module.halves).grad_fn).__name__

    assert replaced()
    module.once.compile(backend="eager")
    assert not replaced()


@pytest.mark.parametrize("name", ["bahdanau-reversal", "dnc-tiny", "ntm-tiny", "draw-tiny"])
def test_published_architectures(name):
    torch.manual_seed(0)
    model = zoo.compose(name)
    module = LossModule(model, zoo.objective(name))
    batch = model.example(2, 5, torch.Generator().manual_seed(0))

    def seeded(batch):
        torch.manual_seed(1)
        return module(batch)

    seeded(batch).backward()
    expected = take_gradients(module)
    late = LateGradients(None)
    products = WeightProducts(late)
    with late.use(), RepeatedWeights(products):
        loss = seeded(batch)
    assert max(weight.uses for weight in products._weights.values()) > 3
    late.backward(loss)
    torch.testing.assert_close(take_gradients(module), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
def test_fused_cells_on_a_gpu(module):
    with torch.device("cuda"):
        module, tokens = module.cuda(), TOKENS.cuda()
        expected = plain_gradients(module, tokens)
        found, _ = late_gradients(module, tokens)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
