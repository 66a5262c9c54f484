import pytest
import torch
from sampling_kit import assert_matches_hugging_face, temperature_warper
from transformers.generation import MinPLogitsWarper

from zoo_sampling.min_p import MinP


def test_tokens_below_half_the_maximum_probability_are_removed():
    logprobs = torch.tensor([0.1, 0.4, 0.3, 0.2 - 1e-4, 1e-4]).log()

    probs = MinP(p=0.5).distribution(logprobs)

    torch.testing.assert_close(probs, torch.tensor([0, 4 / 7, 3 / 7, 0, 0]), rtol=0, atol=1e-6)


def test_at_one_only_the_most_probable_tokens_are_kept():
    probs = MinP(p=1.0).distribution(torch.tensor([0.4, 0.2, 0.4]).log())

    torch.testing.assert_close(probs, torch.tensor([0.5, 0, 0.5]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("p", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_distribution_equals_transformers(p, temperature):
    assert_matches_hugging_face(
        MinP(p=p, temperature=temperature), temperature_warper(temperature), MinPLogitsWarper(p)
    )
