import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from zoo_transformer.feed_forward import FeedForward

ACTIVATIONS = {
    "relu": nn.ReLU(),
    "gelu": nn.GELU(),
    "gelu-tanh": nn.GELU(approximate="tanh"),
    "silu": nn.SiLU(),
}


def known_feed_forward(activation: str, gated: bool = False) -> FeedForward:
    ff = FeedForward(dim=1, hidden=2, activation=activation, gated=gated).double()
    state = {
        "up.weight": torch.tensor([[1.0], [-2.0]]),
        "up.bias": torch.tensor([0.5, 0.0]),
        "down.weight": torch.tensor([[3.0, 5.0]]),
        "down.bias": torch.tensor([0.25]),
    }
    gate = {"gate.weight": torch.tensor([[2.0], [0.5]]), "gate.bias": torch.tensor([0.0, 1.0])}
    ff.load_state_dict(state | gate if gated else state)
    return ff


def activate(activation: str, x: float) -> float:
    if activation == "relu":
        return max(x, 0.0)
    if activation == "silu":
        return x / (1 + math.exp(-x))
    if activation == "gelu":
        return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_output_has_known_values(activation):
    output = known_feed_forward(activation)(torch.tensor([[[1.0]]], dtype=torch.float64))

    # up: 1 + 0.5 and -2
    expected = 3 * activate(activation, 1.5) + 5 * activate(activation, -2.0) + 0.25
    assert abs(output.item() - expected) < 1e-12


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gated_output_has_known_values(activation):
    output = known_feed_forward(activation, gated=True)(
        torch.tensor([[[1.0]]], dtype=torch.float64)
    )

    # up: 1.5 and -2; gate: 2 and 1.5
    expected = 3 * activate(activation, 2.0) * 1.5 + 5 * activate(activation, 1.5) * -2 + 0.25
    assert abs(output.item() - expected) < 1e-12


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_matches_torch_layers(activation, bias):
    torch.manual_seed(0)
    ff = FeedForward(dim=3, hidden=5, activation=activation, bias=bias)
    other = nn.Sequential(
        nn.Linear(3, 5, bias=bias), ACTIVATIONS[activation], nn.Linear(5, 3, bias=bias)
    )
    names = {"up": "0", "down": "2"}
    other.load_state_dict(
        {k.replace(k.split(".")[0], names[k.split(".")[0]]): v for k, v in ff.state_dict().items()}
    )
    x = torch.randn(2, 4, 3)

    torch.testing.assert_close(ff(x), other(x), rtol=0, atol=1e-6)


def test_gated_silu_is_swiglu():
    torch.manual_seed(0)
    ff = FeedForward(dim=3, hidden=5, activation="silu", gated=True, bias=False)
    x = torch.randn(2, 4, 3)

    w = ff.state_dict()
    hidden = F.silu(x @ w["gate.weight"].T) * (x @ w["up.weight"].T)
    torch.testing.assert_close(ff(x), hidden @ w["down.weight"].T, rtol=0, atol=1e-6)


def test_state_dict_keys():
    plain = FeedForward(dim=2, hidden=3)
    gated = FeedForward(dim=2, hidden=3, gated=True, bias=False)

    assert {k: tuple(v.shape) for k, v in plain.state_dict().items()} == {
        "up.weight": (3, 2),
        "up.bias": (3,),
        "down.weight": (2, 3),
        "down.bias": (2,),
    }
    assert {k: tuple(v.shape) for k, v in gated.state_dict().items()} == {
        "up.weight": (3, 2),
        "gate.weight": (3, 2),
        "down.weight": (2, 3),
    }


def test_quick_gelu():
    network = FeedForward(dim=1, hidden=1, activation="quick-gelu")
    x = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(network.activate(x), x / (1 + torch.exp(-1.702 * x)))
