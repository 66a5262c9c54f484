"""Base class of scorers with additive scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from zoo.attention.additive import additive_scores
from zoo.attention.additive_attention import fused_additive
from zoo.device.triton_support import why_not_triton_on
from zoo.interfaces import Mask, Scorer


class AdditiveScorer(Scorer):
    r"""Scorer with a term of the query, a term of the key and a vector.

    .. math:: a(q, k) = v^\top \tanh(\mathrm{query\_term}(q) + \mathrm{prepare}(k))

    A subclass implements `query_term`, `prepare` and `vector`. The fused path needs Triton and a
    CUDA device.

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
        return additive_scores(self.query_term(query), prepared, self.vector())

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (self.query_term(query) + self.prepare(key)).tanh() @ self.vector()
        return scores

    def fused(
        self,
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Mask,
        *,
        dropout_p: float = 0.0,
    ) -> Tensor | None:
        a, v = self.query_term(query), self.vector()
        return fused_additive(a, prepared, v, values, mask, dropout_p=dropout_p)

    @classmethod
    def fused_heads(
        cls,
        scorers: Sequence[Self],
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Mask,
        *,
        dropout_p: float = 0.0,
    ) -> Tensor | None:
        a = [scorer.query_term(query[:, h]) for h, scorer in enumerate(scorers)]
        v = torch.stack([scorer.vector() for scorer in scorers])  # [H, D]
        return fused_additive(torch.stack(a, dim=1), prepared, v, values, mask, dropout_p=dropout_p)

    def why_not_fused(self, device: torch.device, *, dropout_p: float = 0.0) -> str | None:
        return why_not_triton_on(device.type)
