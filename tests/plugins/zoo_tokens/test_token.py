import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_tokens.token import Token


def test_a_token_is_embedded_as_its_row_of_the_table():
    token = Token(vocab=3, dim=4)
    token.load_state_dict(
        {"table.weight": torch.tensor([[0.0, 0, 0, 0], [1, 2, 3, 4], [-1, 0.5, 0, 8]])}
    )

    vectors = token(torch.tensor([[2, 1, 0]]))

    assert vectors.tolist() == [[[-1, 0.5, 0, 8], [1, 2, 3, 4], [0, 0, 0, 0]]]


def test_scaled_multiplies_by_the_square_root_of_dim():
    token = Token(vocab=2, dim=4, scaled=True)
    token.load_state_dict({"table.weight": torch.tensor([[0.0, 0, 0, 0], [1, 2, 3, 4]])})

    vectors = token(torch.tensor([[1]]))

    # sqrt(4) = 2
    assert vectors.tolist() == [[[2 * 1, 2 * 2, 2 * 3, 2 * 4]]]


@pytest.mark.parametrize("scaled", [False, True])
def test_lookup_equals_one_hot_vectors_times_the_table(scaled):
    torch.manual_seed(0)
    token = Token(vocab=7, dim=5, padding=3, scaled=scaled).double()
    inputs = torch.tensor([[0, 1, 2, 3], [6, 5, 4, 3]])

    one_hot = F.one_hot(inputs, 7).double()
    expected = one_hot @ token.table.weight * (5**0.5 if scaled else 1)

    torch.testing.assert_close(token(inputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("padding", [0, 2, 4])
def test_padding_embedding_is_zero_and_stays_zero_in_training(padding):
    torch.manual_seed(0)
    token = Token(vocab=5, dim=3, padding=padding)
    inputs = torch.arange(5)[None]
    optimiser = torch.optim.SGD(token.parameters(), lr=1.0)

    (token(inputs) - 1).square().sum().backward()
    optimiser.step()

    zero = (token.table.weight == 0).all(dim=-1)
    assert zero.tolist() == [token_id == padding for token_id in range(5)]


def test_mask_is_true_where_a_token_is_not_padding():
    token = Token(vocab=5, dim=3, padding=2)

    assert token.mask(torch.tensor([[0, 2, 1], [2, 4, 2]])).tolist() == [
        [True, False, True],
        [False, True, False],
    ]


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_examples_contain_every_token_except_padding(padding):
    token = Token(vocab=4, dim=2, padding=padding)

    tokens = token.example(20, 10, torch.Generator().manual_seed(0))

    assert tokens.shape == (20, 10)
    assert tokens.unique().tolist() == [token_id for token_id in range(4) if token_id != padding]


def test_examples_with_the_same_seed_are_equal():
    token = Token(vocab=50, dim=2)

    first = token.example(4, 5, torch.Generator().manual_seed(3))
    again = token.example(4, 5, torch.Generator().manual_seed(3))
    other = token.example(4, 5, torch.Generator().manual_seed(4))

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_initial_weights_have_the_given_standard_deviation():
    torch.manual_seed(0)
    token = Token(vocab=2001, dim=8, std=0.1)

    rows = token.table.weight[1:]

    # Standard error of 16000 values: 0.1 / sqrt(2 * 16000) = 0.0006 (std), 0.0008 (mean).
    assert rows.std().item() == pytest.approx(0.1, abs=0.003)
    assert rows.mean().item() == pytest.approx(0, abs=0.004)


@pytest.mark.parametrize("padding", [4, 5])
def test_padding_outside_the_vocabulary_raises(padding):
    with pytest.raises(ZooError, match=rf"padding \({padding}\).*vocab \(4\)"):
        Token(vocab=4, dim=2, padding=padding)


def test_attributes_are_those_of_the_constructor():
    token = Token(vocab=5, dim=3, padding=2)

    assert (token.vocab, token.dim, token.padding) == (5, 3, 2)


def test_without_padding_every_token_is_valid():
    torch.manual_seed(0)
    token = Token(vocab=4, dim=2, padding=None)

    tokens = token.example(20, 10, torch.Generator().manual_seed(0))

    assert tokens.unique().tolist() == [0, 1, 2, 3]
    assert token.mask(tokens).all()
    assert token.table.weight.abs().sum(dim=1).all()


def test_the_embedding_of_padding_is_trained_on_request():
    torch.manual_seed(0)
    tokens = torch.tensor([[0, 1, 2]])
    for trained in (False, True):
        token = Token(vocab=4, dim=2, train_padding=trained)
        assert bool(token.table.weight[0].any()) == trained
        assert token.mask(tokens).tolist() == [[False, True, True]]
        (token(tokens).sum() + token.unembed(torch.ones(1, 2)).sum()).backward()
        expected = [2.0, 2.0] if trained else [0.0, 0.0]
        assert token.table.weight.grad[0].tolist() == expected


def test_segment_embeddings_are_added_except_at_padding():
    token = Token(vocab=3, dim=2, scaled=True, segments=2).double()
    token.load_state_dict({
        "table.weight": torch.tensor([[0.0, 0], [1, 2], [3, 4]]),
        "segments.weight": torch.tensor([[0.5, 0.25], [-1, 8]]),
    })  # fmt: skip
    tokens, segments = torch.tensor([[1, 2, 0]]), torch.tensor([[0, 1, 1]])
    inputs = torch.stack([tokens, segments], dim=-1)
    root = 2**0.5

    expected = [[[root + 0.5, 2 * root + 0.25], [3 * root - 1, 4 * root + 8], [0, 0]]]
    torch.testing.assert_close(token(inputs), torch.tensor(expected, dtype=torch.float64))
    assert token.mask(inputs).tolist() == [[True, True, False]]
    first = torch.stack([tokens, torch.zeros_like(tokens)], dim=-1)
    assert torch.equal(token(tokens), token(first))


def test_a_narrow_table_is_projected_and_its_transpose_gives_the_logits():
    token = Token(vocab=3, dim=3, inner_dim=2, scaled=True).double()
    token.load_state_dict({
        "table.weight": torch.tensor([[0.0, 0], [1, 2], [3, 4]]),
        "map.weight": torch.tensor([[1.0, 0], [0, 1], [1, -1]]),
    })  # fmt: skip

    vectors = token(torch.tensor([[1, 2, 0]]))
    logits = token.unembed(torch.tensor([[1.0, 2, 3]], dtype=torch.float64))

    expected = torch.tensor([[[1.0, 2, -1], [3, 4, -1], [0, 0, 0]]], dtype=torch.float64)
    torch.testing.assert_close(vectors, expected * 3**0.5)
    # E Wᵀ h, with Wᵀ h = (4, -1)
    assert logits.tolist() == [[0, 4 - 2, 12 - 4]]


def test_padding_that_ends_a_text_is_valid_once():
    token = Token(vocab=5, dim=2, padding=4, padding_ends=True)
    tokens = torch.tensor([[1, 2, 4, 4], [4, 4, 4, 4], [1, 4, 2, 4], [1, 2, 3, 1]])
    assert token.mask(tokens).int().tolist() == [
        [1, 1, 1, 0],
        [1, 0, 0, 0],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
    ]
    assert token.mask(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0)
    assert token.input_schema().suffix == (4,)  # each text is ended with it
    assert token.train_padding
    assert torch.count_nonzero(token.table.weight[4]) == 2
    with pytest.raises(ZooError, match=r"^padding_ends requires a padding token$"):
        Token(vocab=5, dim=2, padding=None, padding_ends=True)


def test_reset_parameters_initialises_every_parameter():
    torch.manual_seed(0)
    token = Token(vocab=4, dim=2, padding=1, std=0.5, segments=2)
    with torch.no_grad():
        for weight in token.parameters():
            weight.fill_(torch.nan)

    token.reset_parameters()

    assert all(weight.isfinite().all() for weight in token.parameters())
    assert torch.count_nonzero(token.table.weight[1]) == 0
    assert torch.count_nonzero(token.table.weight) == 6


def test_repr_shows_vocab_and_dim():
    assert repr(Token(vocab=4, dim=2)).startswith("Token(\n  vocab=4, dim=2, padding=0")


def test_parameter_names():
    assert list(Token(vocab=4, dim=2, segments=1).state_dict()) == [
        "table.weight",
        "segments.weight",
    ]
    assert list(Token(vocab=4, dim=2).state_dict()) == ["table.weight"]
    narrow = Token(vocab=4, dim=2, inner_dim=1).state_dict()
    assert {name: tuple(weight.shape) for name, weight in narrow.items()} == {
        "table.weight": (4, 1),
        "map.weight": (2, 1),
    }
