import pytest
import torch
from sampling_kit import (
    assert_matches_hugging_face,
    random_logprobs,
    temperature_warper,
)
from transformers.generation import TopPLogitsWarper

from zoo_sampling.top_p import TopP


def kept(probabilities, p):
    return (TopP(p=p).distribution(torch.tensor(probabilities).log()) > 0).tolist()


def test_the_smallest_set_that_reaches_p_has_all_the_mass():
    logprobs = torch.tensor([0.1, 0.5, 0.15, 0.25]).log()

    probs = TopP(p=0.7).distribution(logprobs)

    torch.testing.assert_close(probs, torch.tensor([0, 2 / 3, 0, 1 / 3]), rtol=0, atol=1e-6)


def test_the_most_probable_token_is_always_kept():
    assert kept([0.2, 0.7, 0.1], 0.5) == [False, True, False]
    assert kept([0.2, 0.7, 0.1], 1e-9) == [False, True, False]


def test_ties_are_kept_only_until_p_is_reached():
    assert sum(kept([0.25, 0.25, 0.25, 0.25], 0.6)) == 3
    assert sum(kept([0.25, 0.25, 0.25, 0.25], 0.3)) == 2
    assert sum(kept([0.25, 0.25, 0.25, 0.25], 0.2)) == 1


def test_p_of_one_keeps_every_possible_token():
    assert kept([0.6, 0.4 - 1e-7, 1e-7, 0.0], 1.0) == [True, True, True, False]


@pytest.mark.parametrize("p", [0.05, 0.3, 0.62, 0.9, 0.97])
def test_no_smaller_set_reaches_p(p):
    logprobs = random_logprobs().double()
    probs = TopP(p=p).distribution(logprobs)
    for before, after in zip(logprobs.exp().tolist(), (probs > 0).tolist(), strict=True):
        size, mass = 0, 0.0
        for each in sorted(before, reverse=True):
            if mass >= p:
                break
            size, mass = size + 1, mass + each
        assert sum(after) == size
        assert sum(x for x, is_kept in zip(before, after, strict=True) if is_kept) >= p - 1e-9


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_distribution_equals_transformers(p, temperature):
    warpers = [TopPLogitsWarper(p)] if p < 1 else []  # as in transformers' generate
    assert_matches_hugging_face(
        TopP(p=p, temperature=temperature), temperature_warper(temperature), *warpers
    )
