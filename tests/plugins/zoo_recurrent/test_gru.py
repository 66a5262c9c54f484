import math

import numpy as np
import pytest
import torch

from zoo_recurrent.gru import GRU


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize("variant", ["cudnn", "cho"])
def test_two_steps_of_known_weights(variant):
    encoder = GRU(input_dim=1, hidden=1, variant=variant).double()
    # Rows: reset gate, update gate, candidate.
    encoder.load_state_dict(
        {
            "stack.layers.0.0.weight_ih": torch.tensor([[1.0], [2.0], [-1.0]]),
            "stack.layers.0.0.weight_hh": torch.tensor([[0.5], [-2.0], [4.0]]),
            "stack.layers.0.0.bias_ih": torch.tensor([0.25, 1.0, 0.5]),
            "stack.layers.0.0.bias_hh": torch.tensor([0.0, 0.5, 0.75]),
        }
    )
    inputs = torch.tensor([[[1.0], [-2.0]]], dtype=torch.float64)

    memory = encoder(inputs, torch.ones(1, 2, dtype=torch.bool))

    # Applied after the product, the reset gate multiplies the recurrent bias too.
    r = sigmoid(1 + 0.25)
    z = sigmoid(2 + 1 + 0.5)
    past = r * 0.75 if variant == "cudnn" else 0.75
    h1 = (1 - z) * math.tanh(-1 + 0.5 + past)
    r = sigmoid(-2 + 0.25 + 0.5 * h1)
    z = sigmoid(2 * -2 + 1 - 2 * h1 + 0.5)
    past = r * (4 * h1 + 0.75) if variant == "cudnn" else 4 * (r * h1) + 0.75
    h2 = (1 - z) * math.tanh(2 + 0.5 + past) + z * h1
    expected = torch.tensor([[[h1], [h2]]], dtype=torch.float64)
    torch.testing.assert_close(memory.states, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.summary, expected[:, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(memory.carry["h"], expected[:, -1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_cho_variant_matches_the_paper_item_by_item(
    layers, bidirectional, reference_cell, ragged_batch
):
    torch.manual_seed(0)
    encoder = GRU(
        input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional, variant="cho"
    ).double()
    inputs, mask, lengths = ragged_batch

    memory = encoder(inputs, mask)

    for item, length in enumerate(lengths):
        states = list(inputs[item, :length].numpy())
        finals = []
        for layer in encoder.stack.layers:
            outputs, ends = [], []
            for backward, cell in enumerate(layer):
                weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
                state = {"h": np.zeros(4)}
                direction = []
                for x in states[::-1] if backward else states:
                    state = reference_cell("gru-cho", x, state, weights)
                    direction.append(state["h"])
                outputs.append(direction[::-1] if backward else direction)
                ends.append(state["h"])
            states = [np.concatenate(pair) for pair in zip(*outputs, strict=True)]
            finals.append(np.concatenate(ends))
        for s in range(length):
            np.testing.assert_allclose(
                memory.states[item, s].detach(), states[s], rtol=0, atol=1e-10
            )
        assert torch.count_nonzero(memory.states[item, length:]) == 0
        np.testing.assert_allclose(memory.carry["h"][item].detach(), finals, rtol=0, atol=1e-10)
        np.testing.assert_allclose(memory.summary[item].detach(), finals[-1], rtol=0, atol=1e-10)
