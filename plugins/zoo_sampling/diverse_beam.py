"""Diverse beam search."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Sampler, Search, Selection, Task, ZooError
from zoo_sampling.beam import returned
from zoo_sampling.pool import Early, Rules, best, empty, grown


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
        early_stopping: Early = False,
        n_best: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.width = width
        self.n_best = returned(n_best, width)
        if groups < 1 or width % groups:
            raise ZooError(f"groups ({groups}) must divide width ({width})")
        self.groups = groups
        self.diversity = diversity
        self.rules = Rules(length_penalty, early_stopping)

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        w = self.width // self.groups
        return self._by_group(logprobs, scores, lambda g, ranks, totals: best(ranks, totals, w)[1])

    def begin(self, task: Task) -> Mapping[str, Tensor]:
        return empty(task, self.width, self.groups)

    def advance(
        self, logprobs: Tensor, search: Search, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        pools = []

        def choose(g: int, ranks: Tensor, totals: Tensor) -> Selection:
            chosen, pool = grown(ranks, totals, self._own(search, g), self.rules)
            pools.append(pool)
            return chosen

        chosen = self._by_group(logprobs, search.scores, choose)
        return chosen, {name: torch.cat([p[name] for p in pools], dim=1) for name in search.kept}

    def done(self, search: Search) -> Tensor:
        return search.kept["done"].all(dim=1)

    def finish(self, search: Search) -> tuple[Tensor, Tensor]:
        scores, order = search.kept["scores"].topk(self.n_best)
        tokens = search.kept["tokens"]
        return tokens.gather(1, order[..., None].expand(-1, -1, tokens.shape[-1])), scores

    def _by_group(
        self, logprobs: Tensor, scores: Tensor, choose: Callable[[int, Tensor, Tensor], Selection]
    ) -> Selection:
        """One group after the other, each told what those before it took."""
        taken = torch.zeros_like(logprobs[:, :1])  # [B, 1, V]
        w, chosen = self.width // self.groups, []
        for g in range(self.groups):
            own = slice(g * w, (g + 1) * w)
            totals = scores[:, own, None] + logprobs[:, own]  # [B, w, V]
            part = choose(g, totals - self.diversity * taken, totals)
            possible = (~part.scores.isneginf()).to(taken)
            taken = taken.scatter_add(2, part.tokens[:, None], possible[:, None])
            chosen.append(Selection(part.tokens, part.parents + g * w, part.scores))
        return Selection(
            torch.cat([part.tokens for part in chosen], dim=1),
            torch.cat([part.parents for part in chosen], dim=1),
            torch.cat([part.scores for part in chosen], dim=1),
        )

    def _own(self, search: Search, g: int) -> Search:
        """The search as the group sees it."""
        w = self.width // self.groups
        own = slice(g * w, (g + 1) * w)
        pool = search.kept
        return dataclasses.replace(
            search,
            tokens=search.tokens[:, own],
            scores=search.scores[:, own],
            finished=search.finished[:, own],
            kept={
                "tokens": pool["tokens"][:, own],
                "scores": pool["scores"][:, own],
                "done": pool["done"][:, g : g + 1],
            },
        )
