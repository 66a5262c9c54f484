import math

import numpy as np
import pytest
import torch
from torch import nn

from zoo_recurrent.gru import GRU

LENGTHS = [5, 1, 0, 3]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Four items, one of a single step and one with nothing real in it."""
    inputs = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return inputs, torch.arange(5)[None] < torch.tensor(LENGTHS)[:, None]


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

    # The reset gate weighs the recurrent bias too where it comes after the product.
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
def test_a_ragged_batch_equals_torchs_layers_item_by_item(layers, bidirectional):
    torch.manual_seed(0)
    encoder = GRU(input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional).double()
    torch_cls = nn.GRU(3, 4, layers, batch_first=True, bidirectional=bidirectional).double()
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
        h = torch.zeros(layers, encoder.output_dim, dtype=torch.float64)
        if length:
            real, ends = torch_cls(inputs[item, :length])
            states[:length] = real
            h = ends.view(layers, -1)  # [layers * directions, H]: forward, then backward
        torch.testing.assert_close(memory.states[item], states, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.carry["h"][item], h, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.summary[item], h[-1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_chos_variant_equals_the_papers_formula_item_by_item(layers, bidirectional, reference_cell):
    torch.manual_seed(0)
    encoder = GRU(
        input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional, variant="cho"
    ).double()
    inputs, mask = batch()

    memory = encoder(inputs, mask)

    for item, length in enumerate(LENGTHS):
        states = list(inputs[item, :length].numpy())
        ends = []
        for layer in encoder.stack.layers:
            ways, stops = [], []
            for backward, cell in enumerate(layer):
                weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
                state = {"h": np.zeros(4)}
                real = []
                for x in states[::-1] if backward else states:
                    state = reference_cell("gru-cho", x, state, weights)
                    real.append(state["h"])
                ways.append(real[::-1] if backward else real)
                stops.append(state["h"])
            states = [np.concatenate(both) for both in zip(*ways, strict=True)]
            ends.append(np.concatenate(stops))
        for s in range(length):
            np.testing.assert_allclose(
                memory.states[item, s].detach(), states[s], rtol=0, atol=1e-10
            )
        assert torch.count_nonzero(memory.states[item, length:]) == 0
        np.testing.assert_allclose(memory.carry["h"][item].detach(), ends, rtol=0, atol=1e-10)
        np.testing.assert_allclose(memory.summary[item].detach(), ends[-1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("variant", ["cudnn", "cho"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_it_says_how_wide_its_memory_is(bidirectional, variant):
    encoder = GRU(
        input_dim=3, hidden=4, layers=2, bidirectional=bidirectional, variant=variant
    ).double()

    memory = encoder(*batch())

    assert memory.states.shape[-1] == encoder.output_dim
    assert memory.summary.shape[-1] == encoder.summary_dim
    assert {part: tuple(end.shape[1:]) for part, end in memory.carry.items()} == encoder.carry


@pytest.mark.parametrize("variant", ["cudnn", "cho"])
def test_its_weights_are_named(variant):
    encoder = GRU(input_dim=3, hidden=4, layers=2, bidirectional=True, variant=variant)

    assert {key: tuple(value.shape) for key, value in encoder.state_dict().items()} == {
        "stack.layers.0.0.weight_ih": (12, 3),
        "stack.layers.0.0.weight_hh": (12, 4),
        "stack.layers.0.0.bias_ih": (12,),
        "stack.layers.0.0.bias_hh": (12,),
        "stack.layers.0.1.weight_ih": (12, 3),
        "stack.layers.0.1.weight_hh": (12, 4),
        "stack.layers.0.1.bias_ih": (12,),
        "stack.layers.0.1.bias_hh": (12,),
        "stack.layers.1.0.weight_ih": (12, 8),
        "stack.layers.1.0.weight_hh": (12, 4),
        "stack.layers.1.0.bias_ih": (12,),
        "stack.layers.1.0.bias_hh": (12,),
        "stack.layers.1.1.weight_ih": (12, 8),
        "stack.layers.1.1.weight_hh": (12, 4),
        "stack.layers.1.1.bias_ih": (12,),
        "stack.layers.1.1.bias_hh": (12,),
    }
