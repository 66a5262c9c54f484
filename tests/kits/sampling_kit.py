"""Helpers for tests of stochastic samplers."""

import torch
from torch import Tensor
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper

from zoo.plugin import Sampler


def random_logprobs(count: int = 200, vocab: int = 23, seed: int = 0) -> Tensor:
    """Return log-probabilities [count, V], from flat to peaked; some rows contain -inf."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, vocab, generator=generator) * torch.linspace(0.2, 8, count)[:, None]
    logits[::5, :3] = -torch.inf
    return logits.log_softmax(dim=-1)


def assert_matches_hugging_face(sampler: Sampler, *warpers: object) -> None:
    """Assert that the sampler's distribution equals that of the transformers warpers."""
    logprobs = random_logprobs()
    chain = LogitsProcessorList(warpers)
    expected = chain(torch.zeros(len(logprobs), 0, dtype=torch.long), logprobs.clone())

    actual = sampler.distribution(logprobs)

    assert torch.equal(actual > 0, expected.softmax(dim=-1) > 0)
    torch.testing.assert_close(actual, expected.softmax(dim=-1), rtol=2e-5, atol=1e-7)
    torch.testing.assert_close(sampler.distribution(logprobs[:, None]), actual[:, None])


def temperature_warper(temperature: float) -> TemperatureLogitsWarper:
    return TemperatureLogitsWarper(temperature)
