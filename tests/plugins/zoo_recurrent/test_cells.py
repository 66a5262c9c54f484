import math

import numpy as np
import pytest
import torch
from torch import nn

from zoo_recurrent.cells import GATES, CellStack, RecurrentCell, cell_step, state_names

CELLS = ["rnn", "lstm", "gru", "gru-cho"]


def test_the_reset_gate_stands_before_or_after_the_recurrent_product():
    # One unit; the gates r, z and the candidate n have input weight 0 and these biases.
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
def test_a_cell_equals_its_formula_item_by_item(cell, reference_cell):
    torch.manual_seed(0)
    one = RecurrentCell(cell, input_dim=3, hidden=4).double()
    weights = (one.weight_ih, one.weight_hh, one.bias_ih, one.bias_hh)
    x = torch.randn(5, 3, dtype=torch.float64)
    state = {part: torch.randn(5, 4, dtype=torch.float64) for part in state_names(cell)}

    after = one(x, state)

    assert after.keys() == state.keys()
    for item in range(5):
        before = {part: value[item].numpy() for part, value in state.items()}
        for part, expected in reference_cell(cell, x[item].numpy(), before, weights).items():
            np.testing.assert_allclose(after[part][item].detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("cell", "torchs"), [("rnn", nn.RNNCell), ("lstm", nn.LSTMCell), ("gru", nn.GRUCell)]
)
def test_a_cell_with_the_weights_of_torchs_cell_equals_it(cell, torch_cls):
    torch.manual_seed(0)
    own, other = RecurrentCell(cell, input_dim=3, hidden=4), torch_cls(3, 4)
    own.load_state_dict(other.state_dict())
    x, h, c = torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 4)

    if cell == "lstm":
        after = own(x, {"h": h, "c": c})
        expected_h, expected_c = other(x, (h, c))
        torch.testing.assert_close(after["c"], expected_c, rtol=0, atol=1e-6)
    else:
        after = own(x, {"h": h})
        expected_h = other(x, h)
    torch.testing.assert_close(after["h"], expected_h, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_a_stack_feeds_each_cell_with_the_one_below(cell, reference_stack):
    torch.manual_seed(0)
    stack = CellStack(cell, input_dim=3, hidden=4, layers=3, dropout=0.0).double()
    x = torch.randn(2, 3, dtype=torch.float64)
    state = {part: torch.randn(2, 3, 4, dtype=torch.float64) for part in state_names(cell)}

    after = stack(x, state)

    for item in range(2):
        before = {part: value[item].numpy() for part, value in state.items()}
        expected = reference_stack(cell, x[item].numpy(), before, stack.cells)
        for part in state:
            np.testing.assert_allclose(
                after[part][item].detach(), expected[part], rtol=0, atol=1e-12
            )


def test_dropout_stands_between_the_cells_and_not_before_the_first():
    torch.manual_seed(0)
    stack = CellStack("rnn", input_dim=3, hidden=64, layers=2, dropout=0.5)
    x, state = torch.randn(1, 3), {"h": torch.zeros(1, 2, 64)}

    training = stack.train()(x, state)["h"]
    speaking = stack.eval()(x, state)["h"]

    assert torch.equal(training[:, 0], speaking[:, 0])
    assert not torch.equal(training[:, 1], speaking[:, 1])


def test_weights_are_drawn_within_the_root_of_the_width():
    torch.manual_seed(0)
    one = RecurrentCell("lstm", input_dim=30, hidden=16)

    # 1 / sqrt(16) = 0.25
    for weight in one.parameters():
        assert 0.2 < weight.abs().max().item() <= 0.25


@pytest.mark.parametrize("cell", CELLS)
def test_the_weights_of_a_stack_are_named(cell):
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
