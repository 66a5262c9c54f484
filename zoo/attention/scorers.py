"""Scorers of attention: one for each group of heads, and the base class of additive scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from zoo.interfaces import Scorer
from zoo.registry.blueprint import Blueprint


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
        num_others = 0 if shared else heads - 1
        others = [scorer.build(query_dim=query_dim, key_dim=key_dim) for _ in range(num_others)]
        super().__init__([first, *others])
        self.heads = heads
        self.shared = shared

    @property
    def first(self) -> Scorer:
        """The scorer of the first head."""
        return self[0]  # type: ignore[return-value]

    @property
    def sequential(self) -> bool:
        """Whether the scores depend on previous queries."""
        return self.first.sequential

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        *,
        prepared: bool = False,
        edges: tuple[Tensor, Tensor] | None = None,
        state: Mapping[str, Tensor] | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Compute the scores of all heads: [..., H, T, S].

        Args:
            prepared: whether ``keys`` is the output of `prepare`.
            edges: target and source indices [E]; if set, returns the scores of these pairs only,
                [..., H, E], from keys that are not prepared.
            state: state of sequential scorers, with the weights of the previous query [B, H, S]
                under "weights"; if set, returns the scores of one query and the updated state.
        """
        if state is not None:
            return self._step(queries, keys, state, prepared=prepared)
        if self.shared:
            scores: Tensor = self.first(queries, keys, prepared=prepared, edges=edges)
            return scores
        each = [
            scorer(queries[..., h, :, :], keys[..., h, :, :], prepared=prepared, edges=edges)
            for h, scorer in enumerate(self._scorers())
        ]
        return torch.stack(each, dim=-3 if edges is None else -2)

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute the terms that depend on the keys only: keys [..., H, S, D] -> [..., H, S, *]."""
        if self.shared:
            return self.first.prepare(keys)
        each = [scorer.prepare(keys[..., h, :, :]) for h, scorer in enumerate(self._scorers())]
        return torch.stack(each, dim=-3)

    def init_state(self, keys: Tensor) -> dict[str, Tensor]:
        """Return the state before the first query: prepared keys [B, H, S, *] -> [B, ...]."""
        return {
            f"{h}.{name}": tensor
            for h, scorer in enumerate(self._scorers())
            for name, tensor in scorer.init_state(keys[:, h]).items()
        }

    def extra_repr(self) -> str:
        return f"heads={self.heads}, shared={self.shared}"

    def _step(
        self, queries: Tensor, keys: Tensor, state: Mapping[str, Tensor], *, prepared: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Score one query [B, H, 1, D]."""
        scores: list[Tensor] = []
        updated: dict[str, Tensor] = {}
        for h, scorer in enumerate(self._scorers()):
            prefix = f"{h}."
            own = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
            own["weights"] = state["weights"][:, h]
            head_scores, after = scorer(queries[:, h], keys[:, h], prepared=prepared, state=own)
            scores.append(head_scores)
            updated |= {prefix + name: tensor for name, tensor in after.items()}
        return torch.stack(scores, dim=1), updated

    def _scorers(self) -> list[Scorer]:
        return list(self)  # type: ignore[arg-type]


class AdditiveScorer(Scorer):
    r"""Scorer with a term of the query, a term of the key and a vector.

    .. math:: a(q, k) = v^\top \tanh(\mathrm{query\_term}(q) + \mathrm{prepare}(k))

    A subclass implements `query_term`, `prepare` and `vector`.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    @abstractmethod
    def query_term(self, query: Tensor) -> Tensor:
        """Compute the terms of queries: [..., query_dim] -> [..., D]."""

    @abstractmethod
    def prepare(self, key: Tensor) -> Tensor:
        """Compute the terms of keys: [..., key_dim] -> [..., D]."""

    @abstractmethod
    def vector(self) -> Tensor:
        """Return v [D]."""

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        terms = self.query_term(query)[..., :, None, :] + prepared[..., None, :, :]
        scores: Tensor = terms.tanh() @ self.vector()  # [..., T, S, D] -> [..., T, S]
        return scores

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (self.query_term(query) + self.prepare(key)).tanh() @ self.vector()
        return scores
