"""Combined conditions after top-k, for the tokens that it keeps."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.acceleration import plain_class
from zoo.plugin import Blueprint
from zoo_fast.sampling.candidate_search import Array, Candidates, CandidateSearch, top_candidates
from zoo_sampling.combined import CombinedSampler
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


class CombinedCandidates(CandidateSearch):
    """The conditions after top-k, computed for the tokens that it keeps."""

    name: ClassVar[str] = "combined-candidates"
    serves: ClassVar[type[CombinedSampler]] = CombinedSampler

    def why_not(self, target: CombinedSampler, device: torch.device) -> str | None:  # type: ignore[override]
        if plain_class(target.samplers[0]) is not TopK:
            return "the first condition is not top-k"
        return super().why_not(target, device)

    def candidates(self, target: CombinedSampler, logprobs: Tensor) -> Candidates | None:
        return top_candidates(logprobs, target.samplers[0].k)  # type: ignore[attr-defined]

    def weights(self, target: CombinedSampler, logits: Array) -> Array:
        weights: Array = target.distribution(torch.from_numpy(logits)).numpy()
        return weights

    def samplers(self) -> Iterator[CombinedSampler]:
        parts = Blueprint.of(TopK, k=9, temperature=0.7), Blueprint.of(TopP, p=0.8)
        yield CombinedSampler(samplers=parts)
