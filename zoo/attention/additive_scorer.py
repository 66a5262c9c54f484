"""Base class of scorers with additive scores."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from zoo.interfaces import Scorer


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
