import pytest
import torch

from zoo_recurrent.stack import Stack

LENGTHS = [5, 1, 0, 3]


def batch(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Four items, one of a single step and one with nothing real in it."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(len(LENGTHS), 5, 3, generator=generator, dtype=dtype)
    return inputs, torch.arange(5)[None] < torch.tensor(LENGTHS)[:, None]


def build(cell: str, layers: int, bidirectional: bool, dropout: float = 0.0) -> Stack:
    torch.manual_seed(0)
    return Stack(
        cell, input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional, dropout=dropout
    )


def both_paths(
    stack: Stack, inputs: torch.Tensor, mask: torch.Tensor
) -> list[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """States at the real positions and final states, by the loop and by the kernels."""
    paths = stack.reference(inputs, mask), stack.fused(inputs, mask)
    return [(states * mask[..., None], finals) for states, finals in paths]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_the_reference_path_equals_the_fused_path(cell, layers, bidirectional):
    stack = build(cell, layers, bidirectional)
    inputs, mask = batch()

    (loop, loop_ends), (kernel, kernel_ends) = both_paths(stack, inputs, mask)

    width = 8 if bidirectional else 4
    assert loop.shape == (4, 5, width)
    torch.testing.assert_close(loop, kernel, rtol=0, atol=1e-6)
    assert list(loop_ends) == list(kernel_ends) == (["h", "c"] if cell == "lstm" else ["h"])
    for part in loop_ends:
        assert loop_ends[part].shape == (4, layers, width)
        torch.testing.assert_close(loop_ends[part], kernel_ends[part], rtol=0, atol=1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_the_gradients_of_the_two_paths_are_equal(cell, bidirectional):
    stack = build(cell, 2, bidirectional).double()
    inputs, mask = batch(torch.float64)
    inputs.requires_grad_()

    gradients = []
    for states, finals in both_paths(stack, inputs, mask):
        loss = states.square().sum() + sum((end - 1).square().sum() for end in finals.values())
        gradients.append(torch.autograd.grad(loss, [inputs, *stack.parameters()]))

    for loop, kernel in zip(*gradients, strict=True):
        assert not loop.isnan().any()
        torch.testing.assert_close(loop, kernel, rtol=0, atol=1e-10)


@pytest.mark.parametrize("path", ["reference", "fused"])
def test_an_item_with_nothing_real_ends_in_zeros(path):
    stack = build("lstm", 2, bidirectional=True)
    inputs, mask = batch()

    _, finals = getattr(stack, path)(inputs, mask)

    for end in finals.values():
        assert torch.count_nonzero(end[2]) == 0
        assert torch.count_nonzero(end[[0, 1, 3]]) == end[[0, 1, 3]].numel()


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_the_memory_holds_masked_states_the_top_end_and_every_end(cell):
    stack = build(cell, 2, bidirectional=True)
    inputs, mask = batch()

    memory = stack(inputs, mask)

    states, finals = stack.reference(inputs, mask)
    torch.testing.assert_close(memory.states, states * mask[..., None], rtol=0, atol=1e-6)
    assert torch.count_nonzero(memory.states[~mask]) == 0
    assert torch.equal(memory.mask, mask)
    assert torch.equal(memory.summary, memory.carry["h"][:, -1])
    for part, end in finals.items():
        torch.testing.assert_close(memory.carry[part], end, rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", ["reference", "fused"])
@pytest.mark.parametrize("value", [1e6, float("nan")])
def test_what_stands_at_a_masked_position_changes_no_bit(path, value):
    stack = build("gru", 2, bidirectional=True)
    inputs, mask = batch()
    run = getattr(stack, path)
    states, finals = run(inputs, mask)

    changed_states, changed_finals = run(inputs.masked_fill(~mask[..., None], value), mask)

    assert torch.equal(changed_states[mask], states[mask])
    assert torch.equal(changed_finals["h"], finals["h"])


@pytest.mark.parametrize("path", ["reference", "fused"])
def test_dropout_stands_between_the_layers_and_not_before_the_first(path):
    inputs, mask = batch()
    one, two = build("rnn", 1, True, dropout=0.5), build("rnn", 2, True, dropout=0.5)

    def states(stack: Stack) -> torch.Tensor:
        return getattr(stack, path)(inputs, mask)[0][mask]

    assert torch.equal(states(one.train()), states(one.eval()))
    assert not torch.equal(states(two.train()), states(two.eval()))


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_shapes_are_known_without_storage(cell):
    with torch.device("meta"):
        stack = Stack(cell, input_dim=3, hidden=4, layers=2, bidirectional=True, dropout=0.0)
        memory = stack(torch.empty(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))

    assert memory.states.shape == (2, 5, 8)
    assert memory.summary.shape == (2, 8)
    assert {part: tuple(end.shape) for part, end in memory.carry.items()} == dict.fromkeys(
        ("h", "c") if cell == "lstm" else ("h",), (2, 2, 8)
    )
