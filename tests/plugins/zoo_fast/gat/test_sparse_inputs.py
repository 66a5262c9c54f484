"""Linear layers of inputs with few non-zero elements."""

import copy

import pytest
import torch

import zoo
from zoo.plugin import Blueprint
from zoo_fast.gat import sparse_inputs
from zoo_fast.gat.sparse_inputs import SparseInputs
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat


@pytest.fixture(autouse=True)
def small_inputs(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(sparse_inputs, "MIN_SIZE", 100)


@pytest.fixture
def products(monkeypatch):
    """The number of columns of each sparse product."""
    counts = []
    multiply = sparse_inputs._SparseRows.multiply

    def counting(self, dense):
        counts.append(dense.shape[1])
        return multiply(self, dense)

    monkeypatch.setattr(sparse_inputs._SparseRows, "multiply", counting)
    return counts


def make_inputs(*shape, density=0.02):
    values = torch.randn(*shape, dtype=torch.double)
    return values * (torch.rand(*shape) < density)


@pytest.mark.parametrize("bias", [True, False])
def test_products_and_gradients_equal_those_of_the_layer(products, bias):
    linear = torch.nn.Linear(50, 3, bias=bias).double()
    inputs = make_inputs(2, 20, 50)
    inputs[0, :3] = 0
    found, expected = SparseInputs().project(linear, inputs), linear(inputs)
    torch.testing.assert_close(found, expected)
    parameters = list(linear.parameters())
    results = [torch.autograd.grad(value.cos().sum(), parameters) for value in (found, expected)]
    torch.testing.assert_close(*results)
    assert len(products) == 2


@pytest.mark.parametrize("bias", [True, False])
def test_heads_have_their_own_dropout(products, bias):
    linear = torch.nn.Linear(50, 6, bias=bias).double()
    inputs, dropout, masks = make_inputs(2, 20, 50), torch.nn.Dropout(0.5), []
    dropout.register_forward_hook(lambda module, args, output: masks.append(output / args[0]))

    found = SparseInputs().project_heads(linear, inputs, 3, dropout)

    at = inputs.flatten(0, 1).nonzero(as_tuple=True)
    factors = [torch.zeros(40, 50).double().index_put(at, mask).view(2, 20, 50) for mask in masks]
    expected = torch.cat(
        [linear(inputs * factor)[..., 2 * h : 2 * h + 2] for h, factor in enumerate(factors)],
        dim=-1,
    )
    torch.testing.assert_close(found, expected)
    parameters = list(linear.parameters())
    results = [torch.autograd.grad(value.cos().sum(), parameters) for value in (found, expected)]
    torch.testing.assert_close(*results)
    assert products == [2, 2, 2]
    assert not torch.equal(masks[0], masks[1])
    dense = torch.randn_like(inputs)
    assert SparseInputs().project_heads(linear, dense, 3, dropout) is None


def test_derivatives_of_the_weight():
    inputs, found = make_inputs(1, 20, 50, density=0.01), SparseInputs()
    linear = torch.nn.Linear(50, 2, bias=False).double()

    def project(weight):
        return torch.func.functional_call(Wrapper(found, linear), {"linear.weight": weight}, inputs)

    weight = linear.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(project, weight)
    assert torch.autograd.gradgradcheck(project, weight)


class Wrapper(torch.nn.Module):
    def __init__(self, found, linear):
        super().__init__()
        self.found, self.linear = found, linear

    def forward(self, inputs):
        return self.found.project(self.linear, inputs)


def test_dense_small_or_trained_inputs_are_not_sparse(products):
    linear, found = torch.nn.Linear(50, 3).double(), SparseInputs()
    for inputs in (
        make_inputs(1, 20, 50, density=0.5),
        make_inputs(1, 1, 50, density=0.0),
        make_inputs(1, 20, 50).requires_grad_(),
    ):
        assert found.project(linear, inputs) is None
    assert not products


def test_changed_inputs_are_processed_again():
    linear, found = torch.nn.Linear(50, 3).double(), SparseInputs()
    inputs = make_inputs(1, 20, 50)
    found.project(linear, inputs)
    inputs[0, 4, 1] = 1.0
    torch.testing.assert_close(found.project(linear, inputs), linear(inputs))


def test_hooks_of_the_projection_are_called(products):
    layer = EdgeAttention(input_dim=50, head_dim=2, heads=2, merge="mean", scorer=Blueprint.of(Gat))
    layer = zoo.accelerate(layer.double())
    inputs, mask = make_inputs(1, 20, 50), torch.ones(1, 20, dtype=torch.bool)
    hooked = zoo.accelerate(copy.deepcopy(layer))
    outputs = []
    hooked.key.register_forward_hook(lambda *arguments: outputs.append(arguments[2]))
    torch.testing.assert_close(hooked(inputs, mask, None), layer(inputs, mask, None))
    assert (len(outputs), len(products)) == (1, 1)
