"""Joint CTC and attention decoding."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Blueprint, FrameSampler, Sampler, SearchConfig, SearchState, Selection
from zoo_ctc.prefix_scorer import NEG_INF, PrefixScorer


class JointCtcSearch(Sampler):
    r"""Search for the labels with the highest mixture of the decoder's score and the CTC score.

    .. math::
        s(y) = \lambda \log p_{\mathrm{CTC}}(y \mid x)
            + (1 - \lambda) \log p_{\mathrm{attention}}(y \mid x)

    The CTC score of an unfinished hypothesis is the log-probability that the labels of the frames
    start with it. Labels that no path gives are not generated. With weight 0 the result is that of
    ``search``. It needs a model with a decoder and a CTC head, for example ctc-attention.

    Paper: Hori et al. 2017 (one-pass decoding); Watanabe et al. 2017, algorithm 2.

    Args:
        search: sampler that selects the hypotheses, for example beam.
        weight: weight lambda of the CTC score.

    Shapes:
        logprobs [B, W, V], scores [B, W] -> tokens, parents, scores [B, W].
    """

    name: ClassVar[str] = "joint-ctc-search"
    paper: ClassVar[str] = (
        "Hori et al. 2017, Joint CTC/attention Decoding for End-to-End Speech Recognition"
    )
    decoding: ClassVar[str] = "joint"

    def __init__(
        self,
        *,
        search: Blueprint[Sampler],
        weight: Annotated[float, Field(ge=0, le=1)] = 0.3,
    ) -> None:
        self.search = search.build()
        if isinstance(self.search, FrameSampler):
            raise ZooError(
                f"search: sampler '{self.search.name}' decodes frames; use a token sampler, for "
                "example beam"
            )
        self.weight = weight
        self.width, self.groups = self.search.width, self.search.groups
        self.min_vocab = self.search.min_vocab
        self.scorer: PrefixScorer | None = None

    def with_frames(self, logprobs: Tensor, mask: Tensor, *, blank: int) -> JointCtcSearch:
        """Return this sampler for frames with logprobs [B, T, V] and mask [B, T]."""
        bound = copy.copy(self)
        bound.scorer = PrefixScorer(logprobs, mask, blank=blank)
        return bound

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        own = self._scorer().init_state(self.width)
        return {**self.search.init_state(task), **own}

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        scorer, state = self._scorer(), search.sampler_state
        own = {name: tensor for name, tensor in state.items() if name.startswith("ctc.")}
        scores = scorer.scores(own, search.task.eos_ids)  # [B, W, V]
        mixed = self._mix(logprobs, scores - own["ctc.score"][..., None])
        mixed = torch.where(search.finished[..., None], logprobs, mixed)
        selection, updated = self.search.advance(mixed, search, generator)
        own = scorer.extend(own, selection.parents, selection.tokens, scores)
        return selection, {**state, **updated, **own}

    def done(self, search: SearchState) -> Tensor:
        return self.search.done(search)

    def finish(self, search: SearchState) -> tuple[Tensor, Tensor]:
        return self.search.finish(search)

    def _mix(self, logprobs: Tensor, ctc: Tensor) -> Tensor:
        """Return the weighted sum of the scores of the next labels, each [B, W, V]."""
        if self.weight == 0:
            return logprobs
        mixed = (1 - self.weight) * logprobs + self.weight * ctc.to(logprobs)
        # 0 * -inf and -inf + inf are NaN.
        return mixed.masked_fill(logprobs.isneginf() | ~ctc.isfinite(), NEG_INF)

    def _scorer(self) -> PrefixScorer:
        if self.scorer is None:
            raise ZooError(
                f"sampler '{self.name}' needs a model with a decoder and a CTC head, for example "
                "ctc-attention"
            )
        return self.scorer
