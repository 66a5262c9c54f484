import pytest
import torch
from transformers.generation import NoRepeatNGramLogitsProcessor

from zoo import ZooError
from zoo_sampling.no_repeat_ngram import NoRepeatNgram


def banned(n, tokens_so_far):
    filtered = NoRepeatNgram(n=n)(torch.zeros(1, 1, 6), torch.tensor([[tokens_so_far]]))
    return [token for token, score in enumerate(filtered[0, 0].tolist()) if score == -torch.inf]


def test_tokens_that_would_repeat_an_ngram_are_masked():
    assert banned(2, [1, 2, 3, 1]) == [2]
    assert banned(2, [1, 2, 1, 3, 1]) == [2, 3]
    assert banned(2, [1, 2, 3]) == []
    assert banned(3, [1, 2, 3, 1, 2]) == [3]
    assert banned(3, [1, 2, 3, 2, 2]) == []
    assert banned(1, [4, 2, 4]) == [2, 4]
    assert banned(2, [1]) == []
    assert banned(2, [5, 5]) == [5]


@pytest.mark.parametrize("n", [1, 2, 3, 12, 13])
def test_scores_equal_transformers(n):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 4, 9, generator=generator)
    tokens = torch.randint(0, 3, (6, 4, 12), generator=generator)

    expected = NoRepeatNGramLogitsProcessor(n)(tokens.flatten(0, 1), scores.flatten(0, 1))

    assert torch.equal(NoRepeatNgram(n=n)(scores, tokens).flatten(0, 1), expected)


def test_n_must_be_positive():
    with pytest.raises(ZooError, match="n is 0"):
        NoRepeatNgram(n=0)
