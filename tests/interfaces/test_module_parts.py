"""The parts and parameters of modules, compared with those that torch returns."""

import pytest
import torch
from torch import nn

import zoo
from zoo.interfaces.module_parts import each_part, first_parameter


def without_first_bias():
    model = nn.Sequential(nn.ReLU(), nn.LayerNorm(2, elementwise_affine=False), nn.Linear(2, 2))
    model.register_module("absent", None)
    return model


def shared():
    linear = nn.Linear(2, 2)
    return nn.Sequential(linear, nn.Sequential(linear, nn.Linear(2, 3)))


def weight_norm():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2, bias=False)))


MODULES = (
    lambda: nn.Linear(2, 2),
    lambda: nn.Sequential(nn.ReLU()),
    without_first_bias,
    shared,
    weight_norm,
    lambda: zoo.compose("transformer-tiny"),
)


@pytest.mark.parametrize("make", MODULES)
def test_parts_and_the_first_parameter_are_those_of_torch(make):
    module = make()
    assert set(each_part(module)) == set(module.modules())
    assert first_parameter(module) is next(module.parameters(), None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_traced_part_has_a_first_parameter():
    traced = torch.jit.trace(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), torch.ones(1, 2))
    found = first_parameter(nn.Sequential(traced))
    assert torch.equal(found, next(traced.parameters()))
