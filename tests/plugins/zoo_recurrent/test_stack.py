import pytest
import torch
from recurrent_kit import HOOKS, build_stack, check_hook_of_a_cell, stack_batch

from zoo_recurrent.stack import Stack


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_memory_holds_masked_states_and_final_states(cell):
    stack = build_stack(cell, 2, bidirectional=True)
    inputs, mask = stack_batch()

    memory = stack(inputs, mask)

    states, finals = stack.run_layers(inputs, mask)
    torch.testing.assert_close(memory.states, states * mask[..., None], rtol=0, atol=1e-6)
    assert torch.count_nonzero(memory.states[~mask]) == 0
    assert torch.equal(memory.mask, mask)
    assert torch.equal(memory.summary, memory.carry["h"][:, -1])
    for name, final in finals.items():
        torch.testing.assert_close(memory.carry[name], final, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_shapes_on_the_meta_device(cell):
    with torch.device("meta"):
        stack = Stack(cell, input_dim=3, hidden=4, layers=2, bidirectional=True, dropout=0.0)
        memory = stack(torch.empty(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))

    assert memory.states.shape == (2, 5, 8)
    assert memory.summary.shape == (2, 8)
    assert {name: tuple(final.shape) for name, final in memory.carry.items()} == dict.fromkeys(
        ("h", "c") if cell == "lstm" else ("h",), (2, 2, 8)
    )


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_on_a_cell_run_and_do_not_change_the_result(register):
    check_hook_of_a_cell(build_stack("lstm", 2, bidirectional=True), register)
