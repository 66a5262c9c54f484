import pytest
import torch

from zoo_recurrent.stack import Stack

LENGTHS = [5, 1, 0, 3]


def batch(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and mask of four items, one of them of length 1 and one empty."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(len(LENGTHS), 5, 3, generator=generator, dtype=dtype)
    return inputs, torch.arange(5)[None] < torch.tensor(LENGTHS)[:, None]


def build(cell: str, layers: int, bidirectional: bool, dropout: float = 0.0) -> Stack:
    torch.manual_seed(0)
    return Stack(
        cell, input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional, dropout=dropout
    )


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_memory_holds_masked_states_and_final_states(cell):
    stack = build(cell, 2, bidirectional=True)
    inputs, mask = batch()

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


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_on_a_cell_run_and_do_not_change_the_result(register):
    stack = build("lstm", 2, bidirectional=True)
    inputs, mask = batch()
    expected = stack(inputs, mask)
    calls = []
    handle = getattr(stack.layers[1][1], register)(lambda *args: calls.append(args))

    memory = stack(inputs, mask)
    handle.remove()
    stack(inputs, mask)

    assert len(calls) == inputs.shape[1]
    torch.testing.assert_close(memory.states, expected.states, rtol=0, atol=1e-6)
    torch.testing.assert_close(memory.carry, expected.carry, rtol=0, atol=1e-6)
