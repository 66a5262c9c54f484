"""Scorer: how well a query and a key go together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Mask


class Scorer(Component, nn.Module, ABC):
    """Scores queries against keys; the alignment makes weights of the scores.

    Given by the parent: query_dim, key_dim.

    Laws:
        permuting the keys permutes the scores; the pair form, also of listed edges, equals the
        dense form; preparing the keys first changes nothing; gradients are right (gradcheck); the
        fused path, where there is one, equals the reference path and obeys the mask; queries one
        by one get what they get all at once. Of a sequential scorer, `score` is that of a first
        look.
    """

    kind: ClassVar[str] = "scorer"
    traced_method: ClassVar[str] = "score"
    supports_rotary: ClassVar[bool] = False
    """A plain inner product, so that rotated queries and keys see relative positions."""
    sequential: ClassVar[bool] = False
    """Needs what was looked at a step before; `first` and `step` say how."""
    ignores_keys: ClassVar[bool] = False
    """Scores places, whatever the keys there say; so a pair alone, an edge, has no score."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """query [..., T, Dq], key [..., S, Dk] -> scores [..., T, S]."""
        return self.score(query, self.prepare(key))

    def prepare(self, key: Tensor) -> Tensor:
        """The work that depends on the keys alone, done once a sequence: [..., S, *]."""
        return key

    @abstractmethod
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """query [..., T, Dq], prepared keys [..., S, *] -> scores [..., T, S]."""

    @abstractmethod
    def pairs(self, query: Tensor, key: Tensor) -> Tensor:
        """The formula on pairs, an edge each: query [..., Dq], key [..., Dk] -> scores [...]."""

    def edges(self, query: Tensor, key: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Scores of listed pairs: query [..., T, Dq], key [..., S, Dk], indices [E] -> [..., E].

        A scorer that can do part of the work once a node, before it goes to the edges, does so.
        """
        return self.pairs(query.index_select(-2, target), key.index_select(-2, source))

    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        """What a sequential scorer remembers before the first step: tensors [B, ...]."""
        return {}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """One step of a sequential scorer: query [B, 1, Dq] -> scores [B, 1, S], new memory.

        The state holds what `first` or the last `step` gave, and under "weights" [B, S] the
        weights of the step before, zeros at the first.
        """
        return self.score(query, prepared), {}

    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor | None:
        """Softmax attention in one kernel, or None where there is none for these tensors.

        query [B, H, T, Dq], prepared keys [B, H, S, *], values [B, H, S, Dv] -> [B, H, T, Dv].
        """
        return None
