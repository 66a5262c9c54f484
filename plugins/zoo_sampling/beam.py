"""Beam search."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Sampler, SearchConfig, SearchState, Selection
from zoo_sampling.beam_pool import (
    BeamConfig,
    EarlyStopping,
    LengthNorm,
    continue_best,
    empty_pool,
    finalize,
    migrate_length_penalty,
    num_candidates,
    top_continuations,
)


class Beam(Sampler):
    r"""Beam search: keep the hypotheses with the highest log-probability.

    .. math:: s(y) = \frac{1}{\mathrm{lp}(y)} \sum_{t=1}^{|y|} \log p(y_t \mid y_{<t}, x), \qquad
        \mathrm{lp}(y) = |y|^\alpha \text{ or, GNMT, } \left(\frac{5 + |y|}{6}\right)^\alpha

    Paper: Sutskever et al. 2014, section 3.2, which does not normalise by the length (alpha 0); Wu
    et al. 2016, equation 14, for GNMT. The length includes the end token. Finished hypotheses are
    kept in a pool of the given width, as in transformers, whose default is alpha 1.

    Args:
        width: number of hypotheses, W.
        length_penalty: exponent alpha; 0 ranks by log-probability, above 0 favours long, below 0
            short sequences.
        length_norm: what is raised to the exponent: 'power' the length, as in transformers, 'gnmt'
            (5 + length) / 6, as in GNMT and the Transformer.
        early_stopping: when to stop an item. true: as soon as width hypotheses have ended; false:
            when, in addition, no unfinished hypothesis could improve on them if it ended now;
            never: when none could at any length.
        n_best: number of hypotheses to return; all of them if None.

    Shapes:
        logprobs [B, W, V], scores [B, W] -> tokens, parents, scores [B, W].
    """

    name: ClassVar[str] = "beam"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self,
        *,
        width: Annotated[int, Field(ge=1, le=4096)] = 4,
        length_penalty: Annotated[float, Field(allow_inf_nan=False)] = 0.0,
        length_norm: LengthNorm = "power",
        early_stopping: EarlyStopping = False,
        n_best: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.width = self.min_vocab = width
        self.config = BeamConfig(length_penalty, length_norm, early_stopping)
        self.n_best = validate_n_best(n_best, width)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        migrate_length_penalty(version, params)
        return params, tensors

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        totals = scores[..., None] + logprobs  # [B, W, V]
        return top_continuations(totals, totals, self.width)[1]

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        return empty_pool(task, self.width)

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        totals = search.scores[..., None] + logprobs
        found = top_continuations(totals, totals, num_candidates(search.task, self.width))
        step = continue_best(*found, search, self.config)
        return step.selection, step.pool

    def done(self, search: SearchState) -> Tensor:
        return search.sampler_state["done"].all(dim=1)

    def finish(self, search: SearchState) -> tuple[Tensor, Tensor]:
        return finalize(search, self.n_best)


def validate_n_best(n_best: int | None, width: int) -> int:
    """Return the number of hypotheses to return, or raise ZooError if it exceeds the width."""
    if width < 1:
        raise ZooError(f"width is {width}; it must be at least 1")
    if n_best is not None and not 1 <= n_best <= width:
        raise ZooError(f"n_best ({n_best}) must be between 1 and width ({width})")
    return n_best or width
