import pytest
import torch
from sampling_kit import assert_matches_hugging_face, temperature_warper
from transformers.generation import TopKLogitsWarper

from zoo_sampling.top_k import TopK


def test_the_k_most_probable_tokens_have_all_the_mass():
    logprobs = torch.tensor([0.1, 0.4, 0.3, 0.2]).log()

    probs = TopK(k=2).distribution(logprobs)

    torch.testing.assert_close(probs, torch.tensor([0, 4 / 7, 3 / 7, 0]), rtol=0, atol=1e-6)


def test_ties_with_the_kth_token_are_kept():
    probs = TopK(k=2).distribution(torch.tensor([0.2, 0.4, 0.2, 0.2]).log())

    assert (probs > 0).tolist() == [True, True, True, True]


def test_k_above_the_vocabulary_size_keeps_all_tokens():
    logprobs = torch.tensor([0.7, 0.3]).log()

    torch.testing.assert_close(TopK(k=100).distribution(logprobs), logprobs.exp())


@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_distribution_equals_transformers(k, temperature):
    assert_matches_hugging_face(
        TopK(k=k, temperature=temperature), temperature_warper(temperature), TopKLogitsWarper(k)
    )
