import math

import pytest
import torch
from torch import nn

from zoo_recurrent.lstm import LSTM

LENGTHS = [5, 1, 0, 3]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Four items, one of a single step and one with nothing real in it."""
    inputs = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return inputs, torch.arange(5)[None] < torch.tensor(LENGTHS)[:, None]


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


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_ragged_batch_equals_torchs_layers_item_by_item(layers, bidirectional):
    torch.manual_seed(0)
    encoder = LSTM(input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional).double()
    torch_cls = nn.LSTM(3, 4, layers, batch_first=True, bidirectional=bidirectional).double()
    with torch.no_grad():
        for name, weight in torch_cls.named_parameters():
            # weight_ih_l2_reverse of torch is weight_ih of our layer 2, second direction.
            stem, _, rest = name.rpartition("_l")
            cell = encoder.stack.layers[int(rest[0])][1 if "reverse" in rest else 0]
            weight.copy_(getattr(cell, stem))
    inputs, mask = batch()

    memory = encoder(inputs, mask)

    for item, length in enumerate(LENGTHS):
        states = torch.zeros(5, encoder.output_dim, dtype=torch.float64)
        h = c = torch.zeros(layers, encoder.output_dim, dtype=torch.float64)
        if length:
            real, ends = torch_cls(inputs[item, :length])
            states[:length] = real
            h, c = (end.view(layers, -1) for end in ends)  # forward, then backward
        torch.testing.assert_close(memory.states[item], states, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.carry["h"][item], h, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.carry["c"][item], c, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.summary[item], h[-1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_it_says_how_wide_its_memory_is(bidirectional):
    encoder = LSTM(input_dim=3, hidden=4, layers=2, bidirectional=bidirectional).double()

    memory = encoder(*batch())

    assert memory.states.shape[-1] == encoder.output_dim
    assert memory.summary.shape[-1] == encoder.summary_dim
    assert {part: tuple(end.shape[1:]) for part, end in memory.carry.items()} == encoder.carry


def test_its_weights_are_named():
    encoder = LSTM(input_dim=3, hidden=4, layers=2, bidirectional=True)

    assert {key: tuple(value.shape) for key, value in encoder.state_dict().items()} == {
        "stack.layers.0.0.weight_ih": (16, 3),
        "stack.layers.0.0.weight_hh": (16, 4),
        "stack.layers.0.0.bias_ih": (16,),
        "stack.layers.0.0.bias_hh": (16,),
        "stack.layers.0.1.weight_ih": (16, 3),
        "stack.layers.0.1.weight_hh": (16, 4),
        "stack.layers.0.1.bias_ih": (16,),
        "stack.layers.0.1.bias_hh": (16,),
        "stack.layers.1.0.weight_ih": (16, 8),
        "stack.layers.1.0.weight_hh": (16, 4),
        "stack.layers.1.0.bias_ih": (16,),
        "stack.layers.1.0.bias_hh": (16,),
        "stack.layers.1.1.weight_ih": (16, 8),
        "stack.layers.1.1.weight_hh": (16, 4),
        "stack.layers.1.1.bias_ih": (16,),
        "stack.layers.1.1.bias_hh": (16,),
    }
