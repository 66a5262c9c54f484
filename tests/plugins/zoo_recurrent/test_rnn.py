import math

import torch

from zoo_recurrent.rnn import RNN


def test_two_steps_of_known_weights():
    encoder = RNN(input_dim=1, hidden=1).double()
    encoder.load_state_dict(
        {
            "stack.layers.0.0.weight_ih": torch.tensor([[0.5]]),
            "stack.layers.0.0.weight_hh": torch.tensor([[2.0]]),
            "stack.layers.0.0.bias_ih": torch.tensor([0.25]),
            "stack.layers.0.0.bias_hh": torch.tensor([-0.125]),
        }
    )
    inputs = torch.tensor([[[1.0], [-3.0]]], dtype=torch.float64)

    memory = encoder(inputs, torch.ones(1, 2, dtype=torch.bool))

    first = math.tanh(0.5 * 1 + 0.25 - 0.125)
    second = math.tanh(0.5 * -3 + 0.25 + 2 * first - 0.125)
    expected = torch.tensor([[[first], [second]]], dtype=torch.float64)
    torch.testing.assert_close(memory.states, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.summary, expected[:, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.carry["h"], expected[:, -1:], rtol=0, atol=1e-12)
