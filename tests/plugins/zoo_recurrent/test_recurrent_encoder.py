"""Behaviour that the recurrent encoders share: parity with torch.nn, parameter names."""

import pytest
import torch
from torch import nn

from zoo_recurrent.gru import GRU
from zoo_recurrent.lstm import LSTM
from zoo_recurrent.rnn import RNN


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(("cls", "torch_cls"), [(RNN, nn.RNN), (LSTM, nn.LSTM), (GRU, nn.GRU)])
def test_ragged_batch_matches_torch_item_by_item(
    cls, torch_cls, layers, bidirectional, ragged_batch
):
    torch.manual_seed(0)
    encoder = cls(input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional).double()
    expected = torch_cls(3, 4, layers, batch_first=True, bidirectional=bidirectional).double()
    with torch.no_grad():
        for name, weight in expected.named_parameters():
            # weight_ih_l2_reverse in torch is weight_ih of layer 2, second direction.
            stem, _, rest = name.rpartition("_l")
            cell = encoder.stack.layers[int(rest[0])][1 if "reverse" in rest else 0]
            weight.copy_(getattr(cell, stem))
    inputs, mask, lengths = ragged_batch

    memory = encoder(inputs, mask)

    for item, length in enumerate(lengths):
        states = torch.zeros(5, encoder.output_dim, dtype=torch.float64)
        finals = [torch.zeros(layers, encoder.output_dim, dtype=torch.float64)] * len(memory.carry)
        if length:
            states[:length], final = expected(inputs[item, :length])
            # [layers * directions, H]: forward, then backward
            finals = [f.view(layers, -1) for f in (final if cls is LSTM else (final,))]
        torch.testing.assert_close(memory.states[item], states, rtol=0, atol=1e-10)
        torch.testing.assert_close(memory.summary[item], finals[0][-1], rtol=0, atol=1e-10)
        for carried, final in zip(memory.carry.values(), finals, strict=True):
            torch.testing.assert_close(carried[item], final, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("cls", "gates"), [(RNN, 1), (LSTM, 4), (GRU, 3)])
def test_parameter_names(cls, gates):
    encoder = cls(input_dim=3, hidden=4, layers=2, bidirectional=True)

    assert {key: tuple(value.shape) for key, value in encoder.state_dict().items()} == {
        f"stack.layers.{layer}.{direction}.{name}": shape
        for layer, width in ((0, 3), (1, 8))
        for direction in (0, 1)
        for name, shape in {
            "weight_ih": (gates * 4, width),
            "weight_hh": (gates * 4, 4),
            "bias_ih": (gates * 4,),
            "bias_hh": (gates * 4,),
        }.items()
    }


def test_repr_shows_cells_and_widths():
    encoder = LSTM(input_dim=3, hidden=4, layers=2, bidirectional=True)

    assert "Stack(\n    lstm, hidden=4, bidirectional=True" in repr(encoder)
    assert "RecurrentCell(lstm, input_dim=8, hidden=4)" in repr(encoder)


@pytest.mark.parametrize("cls", [RNN, LSTM, GRU])
def test_output_dropout_sets_states_to_zero_but_not_the_final_state(cls, ragged_batch):
    torch.manual_seed(0)
    encoder = cls(input_dim=3, hidden=64, output_dropout=0.5).double()
    inputs, mask, _ = ragged_batch
    dropped = encoder(inputs, mask)
    expected = encoder.eval()(inputs, mask)

    kept = dropped.states != 0
    assert 0.3 < kept[mask].double().mean() < 0.7
    torch.testing.assert_close(dropped.states[kept], 2 * expected.states[kept])
    torch.testing.assert_close(dropped.summary, expected.summary, rtol=0, atol=0)


@pytest.mark.parametrize("cls", [RNN, LSTM, GRU])
def test_input_dropout_is_applied_to_the_inputs(cls, ragged_batch):
    inputs, mask, _ = ragged_batch
    encoder = cls(input_dim=3, hidden=4, input_dropout=0.5).double()
    torch.manual_seed(1)
    memory = encoder(inputs, mask)
    torch.manual_seed(1)
    dropped = nn.functional.dropout(inputs, 0.5)
    torch.testing.assert_close(memory.states, encoder.eval()(dropped, mask).states)
