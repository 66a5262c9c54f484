"""LoRA of linear layers and tables."""

import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo.adapters import attach
from zoo_adapters.lora import Lora


class _Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.table = nn.Embedding(3, 2, padding_idx=0)


def _adapted(**params):
    model = _Model()
    attach(model, "a", Lora(targets=["layer", "table"], **params))
    return model, model.adapters.a.layers


@torch.no_grad()
def test_known_values_of_a_linear_layer():
    model, layers = _adapted(rank=1, alpha=3.0)
    model.layer.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    model.layer.bias.fill_(0.5)
    layers.layer.A.copy_(torch.tensor([[1.0, 2.0]]))
    layers.layer.B.copy_(torch.tensor([[1.0], [-1.0]]))
    # W x + b = [1.5, 2.5]; A x = 5; s B A x = 3 * [5, -5]
    output = model.layer(torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(output, torch.tensor([16.5, -12.5]))


@torch.no_grad()
def test_known_values_of_a_table_with_padding():
    model, layers = _adapted(rank=1, alpha=2.0)
    model.table.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]]))
    layers.table.A.copy_(torch.tensor([[0.0, 1.0, 2.0]]))
    layers.table.B.copy_(torch.tensor([[1.0], [-1.0]]))
    expected = torch.tensor([[0.0, 0.0], [3.0, 0.0], [7.0, 0.0]])
    torch.testing.assert_close(model.table(torch.arange(3)), expected)


def test_the_row_of_the_padding_gets_no_gradient():
    model, layers = _adapted(rank=1)
    model.table(torch.arange(3)).sum().backward()
    assert layers.table.A.grad[0, 0] == 0
    assert layers.table.A.grad[0, 1:].ne(0).all()


@pytest.mark.parametrize(("stabilised", "scale"), [(False, 4.0), (True, 8.0)])
def test_scale(stabilised, scale):
    _, layers = _adapted(rank=4, alpha=16.0, rank_stabilised=stabilised)
    assert layers.layer.scale == scale


def test_ranks_and_alphas_of_some_layers():
    _, layers = _adapted(rank=4, alpha=8.0, ranks={"tab*": 2, "*": 1}, alphas={"layer": 3.0})
    assert (len(layers.table.A), layers.table.scale) == (2, 4.0)
    assert (len(layers.layer.A), layers.layer.scale) == (1, 3.0)
    with pytest.raises(ZooError, match="'encoder' matches no module that 'lora' can adapt"):
        _adapted(ranks={"encoder": 2})
    with pytest.raises(ZooError, match="'layer' matches no module that 'lora' can adapt"):
        attach(_Model(), "a", Lora(targets=["table"], alphas={"layer": 2.0}))


def test_dropout_changes_the_input_of_the_low_rank_path_only():
    model, layers = _adapted(rank=2, dropout=0.5)
    x = torch.randn(5, 2)
    with torch.no_grad():
        expected = model.layer(x)  # B is zero
        torch.testing.assert_close(model.train().layer(x), expected)
        layers.layer.B.fill_(1.0)
        assert not torch.equal(model.layer(x), model.layer(x))
        assert torch.equal(model.eval().layer(x), model.layer(x))


def test_parameter_names():
    model, _ = _adapted()
    assert [n for n, p in model.named_parameters() if p.requires_grad] == [
        f"adapters.a.layers.{module}.{name}" for module in ("layer", "table") for name in "AB"
    ]
