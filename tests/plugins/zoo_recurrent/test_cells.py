import math

import numpy as np
import pytest
import torch
from torch import nn

from zoo_recurrent.cells import GATES, CellStack, RecurrentCell, cell_step, state_names

CELLS = ["rnn", "lstm", "gru", "gru-cho"]


def test_reset_gate_before_or_after_the_recurrent_product():
    # One unit; the gates r, z and the candidate n have zero input weights.
    weights = (
        torch.zeros(3, 1, dtype=torch.float64),
        torch.tensor([[0.0], [0.0], [2.0]], dtype=torch.float64),
        torch.tensor([math.log(3), 0.0, 0.1], dtype=torch.float64),
        torch.tensor([0.0, 0.0, 0.4], dtype=torch.float64),
    )
    x = torch.zeros(1, 1, dtype=torch.float64)
    state = {"h": torch.tensor([[0.5]], dtype=torch.float64)}

    # r = sigmoid(ln 3) = 3/4, z = sigmoid(0) = 1/2.
    after = 0.5 * math.tanh(0.1 + 0.75 * (2 * 0.5 + 0.4)) + 0.5 * 0.5
    before = 0.5 * math.tanh(0.1 + 2 * (0.75 * 0.5) + 0.4) + 0.5 * 0.5

    assert cell_step("gru", x, state, weights)["h"].item() == pytest.approx(after, abs=1e-12)
    assert cell_step("gru-cho", x, state, weights)["h"].item() == pytest.approx(before, abs=1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_cell_matches_the_reference_item_by_item(cell, reference_cell):
    torch.manual_seed(0)
    module = RecurrentCell(cell, input_dim=3, hidden=4).double()
    x = torch.randn(5, 3, dtype=torch.float64)
    state = {name: torch.randn(5, 4, dtype=torch.float64) for name in state_names(cell)}

    updated = module(x, state)

    assert updated.keys() == state.keys()
    for item in range(5):
        before = {name: value[item].numpy() for name, value in state.items()}
        expected = reference_cell(cell, x[item].numpy(), before, module.weights())
        for name, value in expected.items():
            np.testing.assert_allclose(updated[name][item].detach(), value, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("cell", "torch_cls"), [("rnn", nn.RNNCell), ("lstm", nn.LSTMCell), ("gru", nn.GRUCell)]
)
def test_cell_matches_torch(cell, torch_cls):
    torch.manual_seed(0)
    own, other = RecurrentCell(cell, input_dim=3, hidden=4), torch_cls(3, 4)
    own.load_state_dict(other.state_dict())
    x, h, c = torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 4)

    if cell == "lstm":
        updated = own(x, {"h": h, "c": c})
        expected_h, expected_c = other(x, (h, c))
        torch.testing.assert_close(updated["c"], expected_c, rtol=0, atol=1e-6)
    else:
        updated = own(x, {"h": h})
        expected_h = other(x, h)
    torch.testing.assert_close(updated["h"], expected_h, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_stack_passes_the_output_of_each_cell_to_the_next(cell, reference_stack):
    torch.manual_seed(0)
    stack = CellStack(cell, input_dim=3, hidden=4, layers=3, dropout=0.0).double()
    x = torch.randn(2, 3, dtype=torch.float64)
    state = {name: torch.randn(2, 3, 4, dtype=torch.float64) for name in state_names(cell)}

    updated = stack(x, {**state, "other": torch.randn(2, 5)})

    assert updated.keys() == state.keys()
    for item in range(2):
        before = {name: value[item].numpy() for name, value in state.items()}
        expected = reference_stack(cell, x[item].numpy(), before, stack.cells)
        for name, value in expected.items():
            np.testing.assert_allclose(updated[name][item].detach(), value, rtol=0, atol=1e-12)


def test_dropout_is_applied_between_cells_only():
    torch.manual_seed(0)
    stack = CellStack("rnn", input_dim=3, hidden=64, layers=2, dropout=0.5)
    x, state = torch.randn(1, 3), {"h": torch.zeros(1, 2, 64)}

    training = stack.train()(x, state)["h"]
    evaluating = stack.eval()(x, state)["h"]

    assert torch.equal(training[:, 0], evaluating[:, 0])
    assert not torch.equal(training[:, 1], evaluating[:, 1])


def test_reset_parameters_repeats_the_initialisation():
    torch.manual_seed(0)
    module = RecurrentCell("lstm", input_dim=30, hidden=16)
    initial = {name: weight.clone() for name, weight in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.fill_(torch.nan)

    torch.manual_seed(0)
    module.reset_parameters()

    for name, weight in module.state_dict().items():
        assert torch.equal(weight, initial[name])
        assert 0.2 < weight.abs().max().item() <= 0.25  # 1 / sqrt(16)


@pytest.mark.parametrize("cell", CELLS)
def test_parameter_names_of_a_stack(cell):
    gates = GATES[cell]
    stack = CellStack(cell, input_dim=3, hidden=4, layers=2, dropout=0.1)

    assert {key: tuple(value.shape) for key, value in stack.state_dict().items()} == {
        "cells.0.weight_ih": (gates * 4, 3),
        "cells.0.weight_hh": (gates * 4, 4),
        "cells.0.bias_ih": (gates * 4,),
        "cells.0.bias_hh": (gates * 4,),
        "cells.1.weight_ih": (gates * 4, 4),
        "cells.1.weight_hh": (gates * 4, 4),
        "cells.1.bias_ih": (gates * 4,),
        "cells.1.bias_hh": (gates * 4,),
    }
