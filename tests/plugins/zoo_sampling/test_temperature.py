import pytest
import torch
from sampling_kit import assert_matches_hugging_face, temperature_warper

from zoo_sampling.temperature import Temperature


def test_temperature_one_half_squares_the_probabilities():
    logprobs = torch.tensor([0.5, 0.3, 0.2]).log()

    probs = Temperature(temperature=0.5).distribution(logprobs)

    expected = torch.tensor([0.25, 0.09, 0.04]) / 0.38
    torch.testing.assert_close(probs, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 0.9, 1.0, 2.5])
def test_distribution_equals_transformers(temperature):
    assert_matches_hugging_face(
        Temperature(temperature=temperature), temperature_warper(temperature)
    )
