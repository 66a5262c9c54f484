import pytest
import torch
from transformers.generation import (
    MinLengthLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from zoo import ZooError
from zoo_sampling.suppressed_tokens import SuppressedTokens


def scores():
    return torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))


def history(length):
    return torch.ones(2, 3, length, dtype=torch.long)


def test_tokens_are_masked_in_the_range():
    part = SuppressedTokens(tokens=[4, 2], start=2, stop=4)
    for length in (2, 3):
        filtered = part(scores(), history(length))
        assert filtered[..., [2, 4]].isneginf().all()
        assert torch.equal(filtered[..., [0, 1, 3, 5]], scores()[..., [0, 1, 3, 5]])
    for length in (0, 1, 4):
        assert torch.equal(part(scores(), history(length)), scores())


PAIRS = [
    (SuppressTokensLogitsProcessor([1, 5]), SuppressedTokens(tokens=[1, 5])),
    (
        SuppressTokensAtBeginLogitsProcessor([1, 5], begin_index=2),
        SuppressedTokens(tokens=[1, 5], start=2, stop=3),
    ),
    (MinLengthLogitsProcessor(3, 4), SuppressedTokens(tokens=[4], stop=3)),
]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_scores_equal_transformers(theirs, ours, length):
    expected = theirs(history(length).flatten(0, 1), scores().flatten(0, 1))
    assert torch.equal(ours(scores(), history(length)).flatten(0, 1), expected)


def test_invalid_values():
    with pytest.raises(ZooError, match=r"tokens is \[-1\]"):
        SuppressedTokens(tokens=[-1])
    with pytest.raises(ZooError, match="start is 2 and stop is 2"):
        SuppressedTokens(tokens=[1], start=2, stop=2)
    with pytest.raises(ZooError, match="out of range"):
        SuppressedTokens(tokens=[9])(scores(), history(1))
