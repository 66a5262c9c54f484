"""Nucleus sampling without sorting the vocabulary."""

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor

from zoo_fast.sampling.candidate_search import (
    Array,
    Candidates,
    CandidateSearch,
    softmax_weights,
)
from zoo_fast.sampling.nucleus import nucleus
from zoo_sampling.top_p import TopP


class TopPCandidates(CandidateSearch):
    """Nucleus sampling without sorting the vocabulary."""

    name: ClassVar[str] = "top-p-candidates"
    serves: ClassVar[type[TopP]] = TopP
    uses_threads: ClassVar[bool] = True

    def candidates(self, target: TopP, logprobs: Tensor) -> Candidates | None:
        return None if target.p == 1 else nucleus(logprobs, target.p, target.temperature)

    def weights(self, target: TopP, logits: Array) -> Array:
        return softmax_weights(logits, target.temperature)

    def samplers(self) -> Iterator[TopP]:
        yield from (TopP(p=0.5), TopP(p=0.9, temperature=0.7))
