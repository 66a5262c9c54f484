import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_tokens.token import Token


def test_a_token_becomes_its_row_of_the_table():
    token = Token(vocab=3, dim=4)
    token.load_state_dict(
        {"table.weight": torch.tensor([[0.0, 0, 0, 0], [1, 2, 3, 4], [-1, 0.5, 0, 8]])}
    )

    vectors = token(torch.tensor([[2, 1, 0]]))

    assert vectors.tolist() == [[[-1, 0.5, 0, 8], [1, 2, 3, 4], [0, 0, 0, 0]]]


def test_a_scaled_row_is_multiplied_by_the_root_of_the_width():
    token = Token(vocab=2, dim=4, scaled=True)
    token.load_state_dict({"table.weight": torch.tensor([[0.0, 0, 0, 0], [1, 2, 3, 4]])})

    vectors = token(torch.tensor([[1]]))

    # sqrt(4) = 2
    assert vectors.tolist() == [[[2 * 1, 2 * 2, 2 * 3, 2 * 4]]]


@pytest.mark.parametrize("scaled", [False, True])
def test_the_lookup_equals_one_hot_vectors_times_the_table(scaled):
    torch.manual_seed(0)
    token = Token(vocab=7, dim=5, padding=3, scaled=scaled).double()
    inputs = torch.tensor([[0, 1, 2, 3], [6, 5, 4, 3]])

    one_hot = F.one_hot(inputs, 7).double()
    expected = one_hot @ token.table.weight * (5**0.5 if scaled else 1)

    torch.testing.assert_close(token(inputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("padding", [0, 2, 4])
def test_the_padding_vector_is_zero_and_stays_zero_in_training(padding):
    torch.manual_seed(0)
    token = Token(vocab=5, dim=3, padding=padding)
    inputs = torch.arange(5)[None]
    optimiser = torch.optim.SGD(token.parameters(), lr=1.0)

    (token(inputs) - 1).square().sum().backward()
    optimiser.step()

    zero = (token.table.weight == 0).all(dim=-1)
    assert zero.tolist() == [symbol == padding for symbol in range(5)]


def test_the_mask_is_open_where_a_symbol_is_not_padding():
    token = Token(vocab=5, dim=3, padding=2)

    assert token.mask(torch.tensor([[0, 2, 1], [2, 4, 2]])).tolist() == [
        [True, False, True],
        [False, True, False],
    ]


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_examples_hold_every_symbol_but_padding(padding):
    token = Token(vocab=4, dim=2, padding=padding)

    drawn = token.example(20, 10, torch.Generator().manual_seed(0))

    assert drawn.shape == (20, 10)
    assert drawn.unique().tolist() == [symbol for symbol in range(4) if symbol != padding]


def test_a_seeded_example_repeats():
    token = Token(vocab=50, dim=2)

    first = token.example(4, 5, torch.Generator().manual_seed(3))
    again = token.example(4, 5, torch.Generator().manual_seed(3))
    other = token.example(4, 5, torch.Generator().manual_seed(4))

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_table_is_drawn_with_the_spread_asked_for():
    torch.manual_seed(0)
    token = Token(vocab=2001, dim=8, std=0.1)

    rows = token.table.weight[1:]

    # The spread of 16000 draws is known to 0.1 / sqrt(2 * 16000) = 0.0006, their mean to 0.0008.
    assert rows.std().item() == pytest.approx(0.1, abs=0.003)
    assert rows.mean().item() == pytest.approx(0, abs=0.004)


@pytest.mark.parametrize("padding", [4, 5])
def test_padding_outside_the_vocabulary_is_refused(padding):
    with pytest.raises(ZooError, match=rf"^padding \({padding}\) must be below vocab \(4\)$"):
        Token(vocab=4, dim=2, padding=padding)


def test_its_widths_are_those_it_was_built_with():
    token = Token(vocab=5, dim=3, padding=2)

    assert (token.vocab, token.dim, token.padding) == (5, 3, 2)


def test_without_padding_every_symbol_has_a_vector_is_drawn_and_is_real():
    torch.manual_seed(0)
    token = Token(vocab=4, dim=2, padding=None)

    drawn = token.example(20, 10, torch.Generator().manual_seed(0))

    assert drawn.unique().tolist() == [0, 1, 2, 3]
    assert token.mask(drawn).all()
    assert token.table.weight.abs().sum(dim=1).all()


def test_a_segment_adds_its_vector_but_not_to_padding():
    token = Token(vocab=3, dim=2, scaled=True, segments=2).double()
    token.load_state_dict({
        "table.weight": torch.tensor([[0.0, 0], [1, 2], [3, 4]]),
        "segments.weight": torch.tensor([[0.5, 0.25], [-1, 8]]),
    })  # fmt: skip
    symbols, told = torch.tensor([[1, 2, 0]]), torch.tensor([[0, 1, 1]])
    both = torch.stack([symbols, told], dim=-1)
    root = 2**0.5

    expected = [[[root + 0.5, 2 * root + 0.25], [3 * root - 1, 4 * root + 8], [0, 0]]]
    torch.testing.assert_close(token(both), torch.tensor(expected, dtype=torch.float64))
    assert token.mask(both).tolist() == [[True, True, False]]
    first = torch.stack([symbols, torch.zeros_like(symbols)], dim=-1)
    assert torch.equal(token(symbols), token(first))


def test_its_weights_are_named():
    assert list(Token(vocab=4, dim=2, segments=1).state_dict()) == [
        "table.weight",
        "segments.weight",
    ]
    assert list(Token(vocab=4, dim=2).state_dict()) == ["table.weight"]
