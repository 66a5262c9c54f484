"""Min-p sampling without the probabilities of the whole vocabulary."""

import math
from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor

from zoo_fast.sampling.candidate_search import (
    Array,
    Candidates,
    CandidateSearch,
    find_candidates,
    softmax_weights,
)
from zoo_sampling.min_p import MinP


class MinPCandidates(CandidateSearch):
    """Min-p sampling without the probabilities of the whole vocabulary."""

    name: ClassVar[str] = "min-p-candidates"
    serves: ClassVar[type[MinP]] = MinP

    def candidates(self, target: MinP, logprobs: Tensor) -> Candidates | None:
        # Below the bound by more than the rounding error of the probabilities.
        width = target.temperature * (1e-3 - math.log(target.p))
        return find_candidates(logprobs, lambda maxima: maxima.max(axis=1) - width)

    def weights(self, target: MinP, logits: Array) -> Array:
        weights = softmax_weights(logits, target.temperature)
        weights[weights < target.p] = 0
        return weights

    def samplers(self) -> Iterator[MinP]:
        yield from (MinP(p=0.02), MinP(p=0.5, temperature=3.0))
