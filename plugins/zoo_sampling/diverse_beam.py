"""Diverse beam search."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Sampler, SearchConfig, SearchState, Selection
from zoo_sampling.beam import returned
from zoo_sampling.beam_pool import (
    BeamConfig,
    BeamStep,
    EarlyStopping,
    beam_step,
    best,
    empty,
    finalize,
)


class DiverseBeam(Sampler):
    r"""Follows groups of hypotheses, each shy of the tokens that groups before it just took.

    .. math:: Y^g_t = \arg\max_{y_1, \dots, y_{W/G}} \sum_b \Bigl( \log p(y_b \mid x)
        - \lambda \sum_{h < g} \sum_{b'} [\, y_{b,t} = y^h_{b',t} \,] \Bigr)

    Paper: Vijayakumar et al. 2016, equation 6 with Hamming diversity. The penalty decides who goes
    on; scores stay sums of log-probabilities.

    Args:
        width: hypotheses followed at once, over all groups.
        groups: how many groups they form; must divide width.
        diversity: what each earlier use of a token costs, lambda.
        length_penalty: the exponent of the length; above 0 favours long, below 0 short ones.
        early_stopping: as for a beam, in each group.
        n_best: how many hypotheses are returned; all of them if not set.

    Shapes:
        logprobs [B, W, V], scores [B, W] -> tokens, parents, scores [B, W].
    """

    name: ClassVar[str] = "diverse-beam"
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
        length_penalty: Annotated[float, Field(allow_inf_nan=False)] = 1.0,
        early_stopping: EarlyStopping = False,
        n_best: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.width = width
        self.n_best = returned(n_best, width)
        if groups < 1 or width % groups:
            raise ZooError(f"groups ({groups}) must divide width ({width})")
        self.groups = groups
        self.diversity = diversity
        self.rules = BeamConfig(length_penalty, early_stopping)

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        def select_group(g: int, ranks: Tensor, totals: Tensor) -> BeamStep:
            chosen = best(ranks, totals, self.width // self.groups)[1]
            return BeamStep(chosen, {}, chosen.tokens, (~chosen.scores.isneginf()).to(ranks))

        return self._step_groups(logprobs, scores, select_group)[0]

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        return empty(task, self.width, self.groups)

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        def select_group(g: int, ranks: Tensor, totals: Tensor) -> BeamStep:
            return beam_step(ranks, totals, self._group_search(search, g), self.rules)

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
        """One group after the other, each told what those before it took."""
        counts = torch.zeros_like(logprobs[:, :1])  # [B, 1, V]
        w, steps = self.width // self.groups, []
        for g in range(self.groups):
            own = slice(g * w, (g + 1) * w)
            totals = scores[:, own, None] + logprobs[:, own]  # [B, w, V]
            step = select_group(g, totals - self.diversity * counts, totals)
            counts = counts.scatter_add(2, step.tokens[:, None], step.token_counts[:, None])
            steps.append(step)
        selection = Selection(
            torch.cat([step.chosen.tokens for step in steps], dim=1),
            torch.cat([step.chosen.parents + g * w for g, step in enumerate(steps)], dim=1),
            torch.cat([step.chosen.scores for step in steps], dim=1),
        )
        pool = {name: torch.cat([s.pool[name] for s in steps], dim=1) for name in steps[0].pool}
        return selection, pool

    def _group_search(self, search: SearchState, g: int) -> SearchState:
        """The search as the group sees it."""
        w = self.width // self.groups
        own = slice(g * w, (g + 1) * w)
        pool = search.sampler_state
        return dataclasses.replace(
            search,
            tokens=search.tokens[:, own],
            scores=search.scores[:, own],
            finished=search.finished[:, own],
            sampler_state={
                "tokens": pool["tokens"][:, own],
                "scores": pool["scores"][:, own],
                "done": pool["done"][:, g : g + 1],
            },
        )
