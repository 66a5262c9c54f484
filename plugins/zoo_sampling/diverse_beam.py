"""Diverse beam search."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Sampler, SearchConfig, SearchState, Selection
from zoo_sampling.beam import validate_n_best
from zoo_sampling.beam_pool import (
    BeamConfig,
    BeamStep,
    EarlyStopping,
    LengthNorm,
    continue_best,
    empty_pool,
    finalize,
    migrate_length_penalty,
    num_candidates,
    top_continuations,
)


class DiverseBeam(Sampler):
    r"""Diverse beam search: groups are penalised for tokens that earlier groups selected.

    .. math:: Y^g_t = \arg\max_{y_1, \dots, y_{W/G}} \sum_b \Bigl( \log p(y_b \mid x)
        - \lambda \sum_{h < g} \sum_{b'} [\, y_{b,t} = y^h_{b',t} \,] \Bigr)

    Paper: Vijayakumar et al. 2016, equation 6 with Hamming diversity. The penalty affects the
    selection only; scores are sums of log-probabilities.

    Args:
        width: number of hypotheses over all groups, W.
        groups: number of groups, G; must divide width.
        diversity: penalty for each selection of a token by an earlier group, lambda.
        length_penalty: exponent of the length; 0 ranks by log-probability, as the paper does.
        length_norm: as for beam.
        early_stopping: as for beam, in each group.
        n_best: number of hypotheses to return; all of them if None.

    Shapes:
        logprobs [B, W, V], scores [B, W] -> tokens, parents, scores [B, W].
    """

    name: ClassVar[str] = "diverse-beam"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Vijayakumar et al. 2016, Diverse Beam Search: Decoding Diverse Solutions from Neural "
        "Sequence Models, arXiv:1610.02424"
    )

    def __init__(
        self,
        *,
        width: Annotated[int, Field(ge=1, le=4096)] = 4,
        groups: Annotated[int, Field(ge=1)] = 2,
        diversity: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5,
        length_penalty: Annotated[float, Field(allow_inf_nan=False)] = 0.0,
        length_norm: LengthNorm = "power",
        early_stopping: EarlyStopping = False,
        n_best: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.width = width
        self.n_best = validate_n_best(n_best, width)
        if groups < 1 or width % groups:
            raise ZooError(f"groups ({groups}) must divide width ({width})")
        self.groups = groups
        self.min_vocab = width // groups
        self.diversity = diversity
        self.config = BeamConfig(length_penalty, length_norm, early_stopping)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        migrate_length_penalty(version, params)
        return params, tensors

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        def select_group(g: int, ranks: Tensor, totals: Tensor) -> BeamStep:
            selection = top_continuations(ranks, totals, self.width // self.groups)[1]
            counts = (~selection.scores.isneginf()).to(ranks)
            return BeamStep(selection, {}, selection.tokens, counts)

        return self._step_groups(logprobs, scores, select_group)[0]

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        return empty_pool(task, self.width, self.groups)

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        def select_group(g: int, ranks: Tensor, totals: Tensor) -> BeamStep:
            k = num_candidates(search.task, self.width // self.groups)
            found = top_continuations(ranks, totals, k)
            return continue_best(*found, self._group_search(search, g), self.config)

        return self._step_groups(logprobs, search.scores, select_group)

    def done(self, search: SearchState) -> Tensor:
        return search.sampler_state["done"].all(dim=1)

    def finish(self, search: SearchState) -> tuple[Tensor, Tensor]:
        return finalize(search, self.n_best)

    def _step_groups(
        self,
        logprobs: Tensor,
        scores: Tensor,
        select_group: Callable[[int, Tensor, Tensor], BeamStep],
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        """Step the groups one after the other, with the token counts of the groups before."""
        counts = torch.zeros_like(logprobs[:, :1])  # [B, 1, V]
        w, steps = self.width // self.groups, []
        for g in range(self.groups):
            group = slice(g * w, (g + 1) * w)
            totals = scores[:, group, None] + logprobs[:, group]  # [B, w, V]
            step = select_group(g, totals - self.diversity * counts, totals)
            counts = counts.scatter_add(2, step.tokens[:, None], step.token_counts[:, None])
            steps.append(step)
        selection = Selection(
            torch.cat([step.selection.tokens for step in steps], dim=1),
            torch.cat([step.selection.parents + g * w for g, step in enumerate(steps)], dim=1),
            torch.cat([step.selection.scores for step in steps], dim=1),
        )
        pool = {name: torch.cat([s.pool[name] for s in steps], dim=1) for name in steps[0].pool}
        return selection, pool

    def _group_search(self, search: SearchState, g: int) -> SearchState:
        """Return the search state of one group."""
        w = self.width // self.groups
        group = slice(g * w, (g + 1) * w)
        pool = search.sampler_state
        return dataclasses.replace(
            search,
            tokens=search.tokens[:, group],
            scores=search.scores[:, group],
            finished=search.finished[:, group],
            sampler_state={
                "tokens": pool["tokens"][:, group],
                "scores": pool["scores"][:, group],
                "done": pool["done"][:, g : g + 1],
            },
        )
