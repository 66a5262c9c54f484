"""Accelerations of additive scores, for attentions whose weights are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, AdditiveScorer, Call
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.normalised_additive import NormalisedAdditive
from zoo_fast.attention.additive_scores import additive_scores
from zoo_luong.concat import Concat


class _AdditiveScores(Acceleration):
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True

    def score(self, target: AdditiveScorer, query: Tensor, prepared: Tensor) -> Tensor:
        return additive_scores(target.query_term(query), prepared, target.vector())

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        serves: Any = self.serves
        target = serves(query_dim=6, key_dim=4, hidden=64).to(dtype)
        for shape, T, S in (((2,), 3, 5), ((1, 2), 1, 1), ((), 120, 140)):
            query, prepared = (
                torch.randn(*shape, n, width).to(dtype) for n, width in ((T, 6), (S, 64))
            )
            yield Call(target, (query, prepared), method="score")


class AdditiveScores(_AdditiveScores):
    """Scores of 'additive' without a tensor [..., T, S, D]: a Triton kernel, or chunks on the
    CPU."""

    name: ClassVar[str] = "additive-scores"
    serves: ClassVar[type[AdditiveScorer]] = Additive


class NormalisedAdditiveScores(_AdditiveScores):
    """Scores of 'normalised-additive' without a tensor [..., T, S, D]."""

    name: ClassVar[str] = "normalised-additive-scores"
    serves: ClassVar[type[AdditiveScorer]] = NormalisedAdditive


class ConcatScores(_AdditiveScores):
    """Scores of 'concat' without a tensor [..., T, S, D]."""

    name: ClassVar[str] = "concat-scores"
    serves: ClassVar[type[AdditiveScorer]] = Concat
