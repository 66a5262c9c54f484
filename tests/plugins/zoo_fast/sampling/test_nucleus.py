"""The nucleus of large vocabularies against sorting."""

import pytest
import torch

import zoo
from zoo_fast.sampling import nucleus
from zoo_sampling.top_p import TopP


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def fast(p):
    return zoo.accelerate(TopP(p=p))


def sorted_nucleus(logits, p):
    """Return which tokens [N, V] the definition keeps, and the margin of the nearest decision."""
    probs = logits.double().softmax(dim=-1)
    descending, order = probs.flip(-1).sort(dim=-1, descending=True, stable=True)
    above = descending.cumsum(dim=-1) - descending
    kept = torch.empty_like(order, dtype=torch.bool).scatter_(-1, order, above < p)
    return kept.flip(-1), (above - p).abs().min()


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_tokens_equal_those_of_the_definition(p, scale):
    logits = scale * torch.randn(3, 4100, generator=torch.Generator().manual_seed(0))
    logits[0, 100:] = -torch.inf
    kept, margin = sorted_nucleus(logits, p)
    assert margin > 1e-7  # rounding of the probabilities decides nothing

    probs = fast(p).distribution(logits)

    assert torch.equal(probs > 0, kept)
    expected = logits.masked_fill(~kept, -torch.inf).softmax(dim=-1)
    torch.testing.assert_close(probs, expected)


def test_ties_are_kept_only_until_p_is_reached():
    logits = torch.full((1, 8192), -20.0)
    logits[0, [10, 20, 30, 40]] = 0.0

    assert (fast(0.6).distribution(logits) > 0).nonzero()[:, 1].tolist() == [20, 30, 40]


def test_the_most_probable_token_is_always_kept():
    logits = torch.randn(2, 5000, generator=torch.Generator().manual_seed(0))

    probs = fast(1e-9).distribution(logits)

    assert torch.equal(probs.argmax(dim=-1), logits.argmax(dim=-1))
    assert (probs > 0).sum(dim=-1).tolist() == [1, 1]


def test_equal_logits_keep_the_tokens_of_larger_ids():
    probs = fast(0.5).distribution(torch.zeros(2, 8192))

    assert torch.equal(probs > 0, torch.arange(8192).expand(2, -1) >= 4096)


def test_a_probable_token_that_the_estimate_misses_is_found():
    logits = torch.zeros(2, 8192)
    logits[0, nucleus.STRIDE - 1] = 20.0  # not in the sample
    logits[1, :: nucleus.STRIDE] = -20.0  # the sample has no mass

    for p in (0.5, 0.9):
        kept, _ = sorted_nucleus(logits, p)
        size = (fast(p).distribution(logits) > 0).sum(dim=-1)
        torch.testing.assert_close(size, kept.sum(dim=-1), rtol=0, atol=1)


def test_nan_uses_the_plain_formula():
    logits = torch.zeros(2, 8192)
    logits[1, 5] = torch.nan

    assert nucleus.nucleus(logits, 0.5, 1.0) is None
