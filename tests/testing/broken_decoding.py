"""For each law of samplers and filters a component that breaks it, beside the sound one."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Sampler, Selection
from zoo.testing.parts import TinyFilter, TinySampler


class Draws(Sampler):
    name: ClassVar[str] = "draws"

    def distribution(self, logprobs: Tensor) -> Tensor:
        return logprobs.exp()


class DrawsWithoutTheSeed(Draws):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        return super().select(logprobs, scores, None)


class FlatterThanItSays(Draws):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        return super().select((0.8 * logprobs).log_softmax(dim=-1), scores, generator)


class LosesCount(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        chosen = super().select(logprobs, scores, generator)
        return Selection(chosen.tokens, chosen.parents, chosen.scores - scores)


class DrawsAtRandomFromAll(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        size = logprobs.shape[:2]
        tokens = torch.randint(0, logprobs.shape[-1], size, generator=generator)
        gained = logprobs.gather(-1, tokens[..., None])[..., 0]
        return Selection(tokens, torch.zeros_like(tokens), scores + gained.clamp(min=-9.0))


class SecondBest(TinySampler):
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        gained, tokens = (each[..., 1] for each in logprobs.topk(2, dim=-1))
        return Selection(tokens, torch.zeros_like(tokens), scores + gained.clamp(min=-9.0))


class LikesRepetition(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        said = torch.zeros_like(logprobs).scatter(-1, tokens, 1.0)
        return logprobs + said


class LowersAtOnce(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return super().forward(logprobs, tokens) - 1.0


class MindsTheNeighbours(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return super().forward(logprobs, tokens.flip(1))


class WritesInPlace(TinyFilter):
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return logprobs.scatter_(-1, tokens[..., -1:], float("-inf"))


# (law, broken, sound)
BROKEN_DECODING = [
    ("seeded-draws", DrawsWithoutTheSeed, Draws),
    ("stated-distribution", FlatterThanItSays, Draws),
    ("kept-accounts", LosesCount, TinySampler),
    ("never-impossible", DrawsAtRandomFromAll, TinySampler),
    ("finished-stays-finished", DrawsAtRandomFromAll, TinySampler),
    ("certainty", SecondBest, TinySampler),
    ("never-likelier", LikesRepetition, TinyFilter),
    ("nothing-said", LowersAtOnce, TinyFilter),
    ("own-past", MindsTheNeighbours, TinyFilter),
    ("left-untouched", WritesInPlace, TinyFilter),
]
