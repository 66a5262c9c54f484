"""Top-k sampling without sorting the vocabulary."""

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor

from zoo_fast.sampling.candidate_search import (
    Array,
    Candidates,
    CandidateSearch,
    kth_largest,
    softmax_weights,
    top_candidates,
)
from zoo_sampling.top_k import TopK


class TopKCandidates(CandidateSearch):
    """Top-k sampling without sorting the vocabulary."""

    name: ClassVar[str] = "top-k-candidates"
    serves: ClassVar[type[TopK]] = TopK

    def candidates(self, target: TopK, logprobs: Tensor) -> Candidates | None:
        return top_candidates(logprobs, target.k)

    def weights(self, target: TopK, logits: Array) -> Array:
        weights = softmax_weights(logits, target.temperature)
        weights[logits < kth_largest(logits, target.k)[:, None]] = 0
        return weights

    def samplers(self) -> Iterator[TopK]:
        yield from (TopK(k=1), TopK(k=9, temperature=0.7))
