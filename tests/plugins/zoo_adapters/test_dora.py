"""DoRA, compared with the equation on dense weights."""

import torch
import torch.nn.functional as F
from torch import nn

from zoo.adapters import attach
from zoo_adapters.dora import Dora


def _adapted(dropout=0.0):
    model = nn.Module()
    model.layer = nn.Linear(3, 4)
    attach(model, "a", Dora(targets=["layer"], rank=2, dropout=dropout))
    return model, model.adapters.a.layers.layer


def test_the_output_is_that_of_the_normalised_weight():
    model, layer = _adapted()
    with torch.no_grad():
        for parameter in (layer.A, layer.B, layer.magnitude):
            parameter += torch.randn_like(parameter)
    W = model.layer.weight + layer.scale * layer.B @ layer.A
    W = layer.magnitude[:, None] * W / W.norm(dim=1, keepdim=True)
    x = torch.randn(5, 3)
    torch.testing.assert_close(model.layer(x), F.linear(x, W, model.layer.bias))


def test_magnitudes_are_initially_the_norms_of_the_rows():
    model, layer = _adapted()
    torch.testing.assert_close(layer.magnitude, model.layer.weight.norm(dim=1))


def test_with_dropout_the_magnitude_scales_the_same_inputs():
    model, layer = _adapted(dropout=0.5)
    with torch.no_grad():
        layer.magnitude *= 2
    model.train()
    x = torch.ones(1, 3)
    plain = F.linear(x, model.layer.weight, model.layer.bias)
    torch.manual_seed(0)
    output = model.layer(x)
    torch.manual_seed(0)
    dropped = F.dropout(x, 0.5)
    torch.testing.assert_close(output, plain + F.linear(dropped, model.layer.weight))


def test_parameter_names():
    _, layer = _adapted()
    assert [name for name, _ in layer.named_parameters()] == ["A", "B", "magnitude"]
