"""The scorers of all heads of an attention."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from zoo.interfaces import Scorer
from zoo.registry.blueprint import Blueprint

Edges = tuple[Tensor, Tensor]
"""Target and source index of each edge: [E], [E]."""


class ScorerBank(nn.ModuleList):
    """One scorer per head, or one scorer shared by all heads if it has no parameters and no state.

    Args:
        scorer: the scorer of a head.
        heads: number of heads.
        query_dim: width of a head's queries.
        key_dim: width of a head's keys.

    Shapes:
        queries [..., H, T, query_dim], keys [..., H, S, key_dim] -> scores [..., H, T, S].
    """

    def __init__(
        self, scorer: Blueprint[Scorer], heads: int, *, query_dim: int, key_dim: int
    ) -> None:
        first = scorer.build(query_dim=query_dim, key_dim=key_dim)
        shared = not any(True for _ in first.parameters()) and not first.sequential
        more = 0 if shared else heads - 1
        others = [scorer.build(query_dim=query_dim, key_dim=key_dim) for _ in range(more)]
        super().__init__([first, *others])
        self.shared = shared
        self.heads = heads

    @property
    def first(self) -> Scorer:
        return self[0]  # type: ignore[return-value]

    @property
    def sequential(self) -> bool:
        return self.first.sequential

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute what depends on the keys only: keys [..., H, S, D] -> [..., H, S, *]."""
        if self.shared:
            return self.first.prepare(keys)
        each = [scorer.prepare(keys[..., h, :, :]) for h, scorer in enumerate(self._scorers())]
        return torch.stack(each, dim=-3)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        *,
        prepared: bool = False,
        edges: Edges | None = None,
    ) -> Tensor:
        """Score all query-key pairs, or the listed edges ([..., H, E])."""
        if self.shared:
            scores: Tensor = self.first(queries, keys, prepared=prepared, edges=edges)
            return scores
        each = [
            scorer(queries[..., h, :, :], keys[..., h, :, :], prepared=prepared, edges=edges)
            for h, scorer in enumerate(self._scorers())
        ]
        return torch.stack(each, dim=-2 if edges is not None else -3)

    def init_state(self, keys: Tensor) -> dict[str, Tensor]:
        """Return the state of all heads before the first query: prepared keys [B, H, S, *]."""
        return {
            f"{h}.{name}": tensor
            for h, scorer in enumerate(self._scorers())
            for name, tensor in scorer.init_state(keys[:, h]).items()
        }

    def step(
        self, queries: Tensor, keys: Tensor, state: Mapping[str, Tensor], weights: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Score one query [B, H, 1, D] given the previous weights [B, H, S]."""
        scores: list[Tensor] = []
        updated: dict[str, Tensor] = {}
        for h, scorer in enumerate(self._scorers()):
            own = {n.partition(".")[2]: t for n, t in state.items() if n.startswith(f"{h}.")}
            own["weights"] = weights[:, h]
            each, after = scorer(queries[:, h], keys[:, h], prepared=True, state=own)
            updated |= {f"{h}.{name}": tensor for name, tensor in after.items()}
            scores.append(each)
        return torch.stack(scores, dim=1), updated

    def extra_repr(self) -> str:
        return f"heads={self.heads}, shared={self.shared}"

    def _scorers(self) -> list[Scorer]:
        return list(self)  # type: ignore[arg-type]
