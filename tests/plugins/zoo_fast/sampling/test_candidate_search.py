"""The search of candidates in large vocabularies against the plain formula."""

import pytest
import torch

import zoo
from zoo.plugin import reference
from zoo_fast.sampling import candidate_search
from zoo_fast.sampling.candidate_search import find_candidates, is_searchable, top_candidates
from zoo_sampling.min_p import MinP
from zoo_sampling.top_k import TopK

V = 4099  # not a multiple of the chunk size


def random_logits(step=None, vocab=V):
    """Return logits [2, 3, V]; rounded to multiples of a step, they have ties."""
    logits = 3 * torch.randn(2, 3, vocab, generator=torch.Generator().manual_seed(0))
    logits = logits if step is None else (logits / step).round() * step
    logits[0, 0, 7:] = -torch.inf
    logits[0, 1, -5:] += 20  # in the last chunk
    return logits.log_softmax(dim=-1)


@pytest.mark.parametrize("step", [None, 0.125, 50.0])
@pytest.mark.parametrize(
    "sampler", [TopK(k=1), TopK(k=9, temperature=0.7), MinP(p=0.02), MinP(p=0.5, temperature=3.0)]
)
@torch.no_grad()
def test_distribution_equals_the_plain_formula(sampler, step):
    logits = random_logits(step)

    probs = zoo.accelerate(sampler).distribution(logits)

    expected = reference(sampler, "distribution")(logits)
    assert torch.equal(probs > 0, expected > 0)
    torch.testing.assert_close(probs, expected)


@torch.no_grad()
def test_candidates_include_ties_with_the_kth_token():
    logits = torch.zeros(1, 8192)
    logits[0, [5, 4000, 8191]] = torch.tensor([3.0, 2.0, 2.0])
    logits[0, ::128] += 1.0

    found = top_candidates(logits, 2)

    assert found is not None
    kept = found.logits.reshape(-1)[found.places] >= 2.0
    assert found.sources[kept].tolist() == [5, 4000, 8191]
    probs = zoo.accelerate(TopK(k=2)).distribution(logits)
    assert (probs > 0).nonzero()[:, 1].tolist() == [
        5,
        4000,
        8191,
    ]


@torch.no_grad()
def test_selection_follows_the_distribution_of_the_candidates():
    logprobs = random_logits()[1:, :1].expand(2000, 1, V)
    sampler = zoo.accelerate(TopK(k=3))

    selection = sampler.select(logprobs, torch.zeros(2000, 1), torch.Generator().manual_seed(0))

    counts = torch.bincount(selection.tokens[:, 0], minlength=V).float()
    expected = sampler.distribution(logprobs[0, 0]) * 2000
    kept = expected > 0
    assert counts[~kept].sum() == 0
    # 13.8 is the 99.9th percentile of chi-square with two degrees of freedom.
    assert ((counts - expected)[kept].square() / expected[kept]).sum() < 13.8
    torch.testing.assert_close(selection.scores, logprobs[0, 0][selection.tokens])


def test_many_candidates_use_the_plain_formula():
    assert find_candidates(torch.zeros(2, V), lambda maxima: maxima.max(axis=1)) is None
    assert top_candidates(random_logits(), V // 2) is None


def test_other_types_use_the_plain_formula():
    logits = random_logits()

    assert is_searchable(logits)
    assert not is_searchable(logits.double())
    assert not is_searchable(logits.to("meta"))
    assert not is_searchable(logits[..., : candidate_search.LARGE - 1])
