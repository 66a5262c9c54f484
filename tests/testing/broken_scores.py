"""Scorers and alignments that violate a law, and the valid ones they are based on."""

import torch
from torch import Tensor

from zoo.plugin import AlignmentContext
from zoo.testing.tiny import TinyAlignment, TinyScorer


class PositionDependentScores(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query, prepared) + torch.arange(prepared.shape[-2])


class WrongPairs(TinyScorer):
    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return super().score_pairs(query, key) / 2


class WrongPrepare(TinyScorer):
    def prepare(self, key: Tensor) -> Tensor:
        return 2 * key

    def forward(self, query: Tensor, key: Tensor, *, prepared: bool = False) -> Tensor:
        return self.score(query, key)


class MixesQueries(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query - query.mean(dim=-2, keepdim=True), prepared)


class HalvedGradient(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score((query + query.detach()) / 2, prepared)


class LeakyMaskScorer(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores = super().score(query, prepared)
        return scores * scores.mean(dim=-1, keepdim=True).tanh()


class NegativeWeights(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = super().forward(scores, mask)
        return 2 * weights - weights.flip(-1)


class UnnormalizedRows(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return 0.9 * super().forward(scores, mask)


class OverflowingExponential(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp().masked_fill(~mask, 0.0)
        return weights / weights.sum(dim=-1, keepdim=True)


class MaskAfterSoftmax(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.softmax(dim=-1)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)


class NearZeroMasked(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return (scores if mask is None else scores.masked_fill(~mask, -20.0)).softmax(dim=-1)


class FullyMaskedNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        hidden = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return hidden.softmax(dim=-1)


class FullyMaskedGradientNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp() * mask
        return (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


class IgnoresBatchMask(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return super().forward(scores, mask if scores.dim() == 3 else None)


# (law, broken component, valid component)
BROKEN = [
    ("key-permutation", PositionDependentScores, TinyScorer),
    ("pair-form", WrongPairs, TinyScorer),
    ("prepared-keys", WrongPrepare, TinyScorer),
    ("prepared-keys", MixesQueries, TinyScorer),
    ("gradients", HalvedGradient, TinyScorer),
    ("masked-attention", LeakyMaskScorer, TinyScorer),
    ("valid-weights", NegativeWeights, TinyAlignment),
    ("valid-weights", UnnormalizedRows, TinyAlignment),
    ("valid-weights", OverflowingExponential, TinyAlignment),
    ("masked-keys", MaskAfterSoftmax, TinyAlignment),
    ("masked-keys", NearZeroMasked, TinyAlignment),
    ("fully-masked-rows", FullyMaskedNan, TinyAlignment),
    ("fully-masked-rows", FullyMaskedGradientNan, TinyAlignment),
    ("masked-attention", IgnoresBatchMask, TinyAlignment),
]
