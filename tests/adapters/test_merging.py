"""Adapters of the same modules are merged in the order in which a call applies them."""

import itertools

import pytest
import torch
from torch import nn

from zoo.adapters import attach, merge_layers
from zoo_adapters.ia3 import Ia3
from zoo_adapters.lora import Lora
from zoo_adapters.module_copy import ModuleCopy

ADAPTERS = {
    "low_rank": lambda: Lora(targets=["layer"], rank=2),
    "outputs": lambda: Ia3(targets=["layer"]),
    "inputs": lambda: Ia3(targets=["layer"], inputs=["layer"]),
    "copy": lambda: ModuleCopy(targets=["layer"]),
}


@pytest.mark.parametrize("names", list(itertools.permutations(ADAPTERS, 3)), ids="-".join)
@torch.no_grad()
def test_the_merged_model_has_the_outputs_of_the_adapted_one(names):
    torch.manual_seed(0)
    model = nn.Module()
    model.layer = nn.Linear(3, 4)
    for name in names:
        attach(model, name, ADAPTERS[name]())
    for parameter in model.adapters.parameters():
        parameter += torch.randn_like(parameter)
    x = torch.randn(5, 3)
    expected = model.layer(x)
    merge_layers(model)
    torch.testing.assert_close(model.layer(x), expected)
