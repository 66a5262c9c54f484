"""Samplers and filters that violate a law, and the valid ones they are based on."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Sampler, Selection
from zoo.testing.tiny import TinyFilter, TinySampler


class SoftmaxSampler(Sampler):
    name: ClassVar[str] = "softmax"

    def distribution(self, logprobs: Tensor) -> Tensor:
        return logprobs.exp()


class IgnoresGenerator(SoftmaxSampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        return super().select(logprobs, scores, None)


class WrongDistribution(SoftmaxSampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        return super().select((0.8 * logprobs).log_softmax(dim=-1), scores, generator)


class DependsOnVocabulary(SoftmaxSampler):
    def distribution(self, logprobs: Tensor) -> Tensor:
        return (logprobs * logprobs.shape[-1] / 6).softmax(dim=-1)


class DependsOnIndices(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        nudged = logprobs + 0.5 * torch.arange(logprobs.shape[-1]).to(logprobs)
        tokens = nudged.argmax(dim=-1)
        logprob = logprobs.gather(-1, tokens[..., None])[..., 0]
        return Selection(tokens, torch.zeros_like(tokens), scores + logprob)


class WrongScores(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        selection = super().select(logprobs, scores, generator)
        return Selection(selection.tokens, selection.parents, selection.scores - scores)


class UniformSampler(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        size = logprobs.shape[:2]
        tokens = torch.randint(0, logprobs.shape[-1], size, generator=generator)
        logprob = logprobs.gather(-1, tokens[..., None])[..., 0]
        return Selection(tokens, torch.zeros_like(tokens), scores + logprob.clamp(min=-9.0))


class SecondBest(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        logprob, tokens = (each[..., 1] for each in logprobs.topk(2, dim=-1))
        return Selection(tokens, torch.zeros_like(tokens), scores + logprob.clamp(min=-9.0))


class RaisesScores(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return logprobs + torch.zeros_like(logprobs).scatter(-1, tokens, 1.0)


class LowersWithoutHistory(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return super().forward(logprobs, tokens) - 1.0


class MixesHypotheses(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return super().forward(logprobs, tokens.flip(1))


class WritesInPlace(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return logprobs.scatter_(-1, tokens[..., -1:], float("-inf"))


# (law, broken component, valid component)
BROKEN = [
    ("seeded-sampling", IgnoresGenerator, SoftmaxSampler),
    ("matches-distribution", WrongDistribution, SoftmaxSampler),
    ("score-accumulation", WrongScores, TinySampler),
    ("zero-probability", UniformSampler, TinySampler),
    ("impossible-tokens", DependsOnVocabulary, SoftmaxSampler),
    ("impossible-tokens", DependsOnIndices, TinySampler),
    ("finished-stays-finished", UniformSampler, TinySampler),
    ("greedy-when-certain", SecondBest, TinySampler),
    ("never-increases", RaisesScores, TinyFilter),
    ("empty-history", LowersWithoutHistory, TinyFilter),
    ("hypothesis-independence", MixesHypotheses, TinyFilter),
    ("no-inplace", WritesInPlace, TinyFilter),
]
