import pytest
import torch
from sampling_kit import assert_matches_hugging_face, temperature_warper
from transformers.generation import TypicalLogitsWarper

from zoo_sampling.typical import Typical


def test_tokens_with_information_closest_to_the_entropy_are_kept():
    # H = 1.2206 nats; -log p = 0.693, 1.386, 2.079, 2.079 differ by 0.53, 0.17, 0.86, 0.86.
    logprobs = torch.tensor([0.5, 0.25, 0.125, 0.125]).log()

    one = Typical(mass=0.2).distribution(logprobs)
    two = Typical(mass=0.7).distribution(logprobs)

    assert one.tolist() == [0, 1, 0, 0]
    torch.testing.assert_close(two, torch.tensor([2 / 3, 1 / 3, 0, 0]), rtol=0, atol=1e-6)


def test_mass_of_one_keeps_every_possible_token():
    logprobs = torch.tensor([0.6, 0.4, 0.0]).log()

    torch.testing.assert_close(Typical(mass=1.0).distribution(logprobs), logprobs.exp())


@pytest.mark.parametrize("mass", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_distribution_equals_transformers(mass, temperature):
    assert_matches_hugging_face(
        Typical(mass=mass, temperature=temperature),
        temperature_warper(temperature),
        TypicalLogitsWarper(mass),
    )
