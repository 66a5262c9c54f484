"""Scorer: scores of query-key pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component


class Scorer(Component, nn.Module, ABC):
    """Computes a score for each query-key pair; the alignment normalises them to weights.

    A scorer is called as a module. A subclass implements `score` and `score_pairs`, and overrides
    the other methods if needed.

    From the parent: query_dim, key_dim.

    Laws:
        permuting the keys permutes the scores; `score_pairs` and `score_edges` equal the
        corresponding elements of `score`; preparing the keys first does not change the scores;
        gradients pass gradcheck; queries processed one at a time get the same scores as in
        parallel. For a sequential scorer, `score` computes the scores of the first query.
    """

    kind: ClassVar[str] = "scorer"
    supports_rotary: ClassVar[bool] = False
    """Whether the score is an inner product, so that rotated queries and keys encode relative
    positions."""
    sequential: ClassVar[bool] = False
    """Whether the score depends on previous queries (their weights, or a state of its own); see
    `step`."""
    ignores_keys: ClassVar[bool] = False
    """Whether the score depends on positions only, so that a single pair (an edge) has no score."""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        *,
        prepared: bool = False,
        edges: tuple[Tensor, Tensor] | None = None,
        state: Mapping[str, Tensor] | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Compute scores: query [..., T, Dq], key [..., S, Dk] -> [..., T, S].

        Args:
            prepared: whether ``key`` is the output of `prepare`.
            edges: target and source indices [E]; if set, returns the scores of these pairs only,
                [..., E], from keys that are not prepared.
            state: state of a sequential scorer; if set, returns the scores of one query and the
                updated state.
        """
        if edges is not None:
            return self.score_edges(query, key, *edges)
        keys = key if prepared else self.prepare(key)
        return self.score(query, keys) if state is None else self.step(query, keys, state)

    def prepare(self, key: Tensor) -> Tensor:
        """Compute the terms that depend on the keys only, once per sequence: [..., S, *]."""
        return key

    @abstractmethod
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Compute the scores: query [..., T, Dq], prepared keys [..., S, *] -> [..., T, S]."""

    @abstractmethod
    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        """Score pairs elementwise: query [..., Dq], key [..., Dk] -> scores [...]."""

    def score_edges(self, query: Tensor, key: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Score listed pairs: query [..., T, Dq], key [..., S, Dk], indices [E] -> [..., E].

        Override it to compute per-node terms once instead of once per edge.
        """
        return self.score_pairs(query.index_select(-2, target), key.index_select(-2, source))

    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        """Return the state of a sequential scorer before the first query: tensors [B, ...]."""
        return {}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Process one query of a sequential scorer: query [B, 1, Dq] -> scores [B, 1, S], state.

        The state holds what `init_state` or the previous `step` returned, and under "weights"
        [B, S] the weights of the previous query, zeros at the first.
        """
        return self.score(query, prepared), {}
