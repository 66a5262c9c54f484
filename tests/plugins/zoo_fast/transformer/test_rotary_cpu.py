"""Rotation on the CPU, in the memory layout of the states."""

import pytest
import torch

import zoo
from zoo_fast.transformer.rotary import CpuRotary
from zoo_positions.rotary import Rotary


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("part", [1.0, 0.5])
@torch.no_grad()
def test_results_are_equal_and_in_the_layout_of_the_states(layout, part):
    rotary = Rotary(head_dim=12, layout=layout, part=part)
    states = torch.randn(2, 5, 3, 12).transpose(1, 2)
    expected = rotary.rotate(states, offset=4)
    found = zoo.accelerate(rotary)("rotate", states, offset=4)
    assert torch.equal(found, expected)
    assert found.stride() == states.stride()


def test_subclasses_of_tensors_use_the_reference_path():
    declined = CpuRotary().rotate(Rotary(head_dim=4), torch.nn.Parameter(torch.zeros(1, 2, 3, 4)))
    assert declined.reason == "the states are a Parameter"
