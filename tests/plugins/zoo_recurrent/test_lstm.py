import math

import pytest
import torch

from zoo_recurrent.lstm import LSTM


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_two_steps_of_known_weights():
    encoder = LSTM(input_dim=1, hidden=1).double()
    # Rows: input gate, forget gate, candidate, output gate.
    encoder.load_state_dict(
        {
            "stack.layers.0.0.weight_ih": torch.tensor([[1.0], [2.0], [-1.0], [0.5]]),
            "stack.layers.0.0.weight_hh": torch.tensor([[0.5], [-2.0], [4.0], [1.0]]),
            "stack.layers.0.0.bias_ih": torch.tensor([0.25, 1.0, 0.5, 0.0]),
            "stack.layers.0.0.bias_hh": torch.tensor([0.0, 0.5, 0.25, -0.25]),
        }
    )
    inputs = torch.tensor([[[1.0], [-2.0]]], dtype=torch.float64)

    memory = encoder(inputs, torch.ones(1, 2, dtype=torch.bool))

    c1 = sigmoid(1 + 0.25) * math.tanh(-1 + 0.5 + 0.25)
    h1 = sigmoid(0.5 - 0.25) * math.tanh(c1)
    i = sigmoid(-2 + 0.25 + 0.5 * h1)
    f = sigmoid(2 * -2 + 1 - 2 * h1 + 0.5)
    o = sigmoid(0.5 * -2 + h1 - 0.25)
    c2 = f * c1 + i * math.tanh(2 + 0.5 + 4 * h1 + 0.25)
    h2 = o * math.tanh(c2)
    expected = torch.tensor([[[h1], [h2]]], dtype=torch.float64)
    torch.testing.assert_close(memory.states, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.summary, expected[:, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.carry["h"], expected[:, -1:], rtol=0, atol=1e-12)
    assert memory.carry["c"].item() == pytest.approx(c2, abs=1e-12)
