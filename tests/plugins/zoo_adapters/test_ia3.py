"""IA3: scales of outputs and inputs."""

import torch
from torch import nn

from zoo.adapters import attach
from zoo_adapters.ia3 import Ia3


@torch.no_grad()
def test_known_values():
    model = nn.Module()
    model.value, model.down = nn.Linear(2, 2), nn.Linear(2, 1, bias=False)
    attach(model, "a", Ia3(targets=["value"], inputs=["down"]))
    model.value.weight.copy_(torch.eye(2))
    model.value.bias.copy_(torch.tensor([1.0, 2.0]))
    model.down.weight.fill_(1.0)
    layers = model.adapters.a.layers
    layers.value.scale.copy_(torch.tensor([2.0, 3.0]))
    layers.down.scale.copy_(torch.tensor([10.0, 100.0]))
    torch.testing.assert_close(model.value(torch.ones(2)), torch.tensor([4.0, 9.0]))
    torch.testing.assert_close(model.down(torch.tensor([1.0, 2.0])), torch.tensor([210.0]))
    assert [name for name, _ in model.adapters.named_parameters()] == [
        "a.layers.down.scale",
        "a.layers.value.scale",
    ]
