"""What the tests of samplers that draw share."""

import torch
from torch import Tensor
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper

from zoo.plugin import Sampler


def rows(count: int = 200, vocab: int = 23, seed: int = 0) -> Tensor:
    """Log-probabilities [count, V], from flat to sharp; some have impossible tokens."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, vocab, generator=generator) * torch.linspace(0.2, 8, count)[:, None]
    logits[::5, :3] = -torch.inf
    return logits.log_softmax(dim=-1)


def assert_matches_hugging_face(sampler: Sampler, *warpers: object) -> None:
    """The sampler's distribution is theirs: the same tokens kept, with the same probabilities."""
    logprobs = rows()
    chain = LogitsProcessorList(warpers)
    expected = chain(torch.zeros(len(logprobs), 0, dtype=torch.long), logprobs.clone())

    stated = sampler.distribution(logprobs)

    assert torch.equal(stated > 0, expected.softmax(dim=-1) > 0)
    torch.testing.assert_close(stated, expected.softmax(dim=-1), rtol=2e-5, atol=1e-7)
    torch.testing.assert_close(sampler.distribution(logprobs[:, None]), stated[:, None])


def temperature_warper(temperature: float) -> TemperatureLogitsWarper:
    return TemperatureLogitsWarper(temperature)
