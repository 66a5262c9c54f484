"""Rotation in one kernel, against the reference path in float64; relative errors below 1e-5."""

import pytest
import torch

from zoo_fast.transformer.kernels import rotary as module
from zoo_fast.transformer.rotary import FusedRotary
from zoo_positions.rotary import Rotary

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device(DEVICE):
        yield


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_values_and_gradients_to_the_second_order(layout, part, monkeypatch):
    monkeypatch.setattr(module, "_MAX_HEADS", 2)
    rotary = Rotary(head_dim=12, layout=layout, part=part)
    states = torch.randn(2, 3, 5, 12, requires_grad=True)  # three heads are two programs
    found = FusedRotary().rotate(
        rotary, states.transpose(1, 2).contiguous().transpose(1, 2), offset=4
    )
    double = states.detach().double().requires_grad_()
    expected = rotary.rotate(double, offset=4)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    upper = torch.randn(expected.shape).requires_grad_()
    (first,) = torch.autograd.grad(found, states, upper, create_graph=True)
    (reference,) = torch.autograd.grad(expected, double, upper.double(), create_graph=True)
    torch.testing.assert_close(first.double(), reference, rtol=1e-5, atol=1e-5)
    second = torch.autograd.grad(first.square().sum(), upper)
    torch.testing.assert_close(second, torch.autograd.grad(reference.square().sum(), upper))


def test_an_empty_sequence_uses_the_reference_path():
    declined = FusedRotary().rotate(Rotary(head_dim=4), torch.zeros(1, 2, 0, 4))
    assert declined.reason == "the shape is [1, 2, 0, 4]"
