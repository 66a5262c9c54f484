"""The forms of scores that kernels compute."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from torch import Tensor, nn

from zoo.plugin import Scorer
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.normalised_additive import NormalisedAdditive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_transformer.scaled_dot import ScaledDot


class ScoreForm(NamedTuple):
    r"""A score in the form :math:`v^\top \tanh(W q + b + p)`, with prepared keys p, or without v as
    :math:`(W q + b)^\top p`.

    Attributes:
        weight: W [D, Dq]; the identity if None.
        bias: b [D]; zero if None.
        v: [D], or None for the inner product.
    """

    weight: Tensor | None = None
    bias: Tensor | None = None
    v: Tensor | None = None


@singledispatch
def score_form(scorer: Scorer) -> ScoreForm | None:
    """Return the form of the score, or None if it has another one."""
    return None


@score_form.register
def _(scorer: Dot) -> ScoreForm:
    return ScoreForm()


@score_form.register
def _(scorer: General) -> ScoreForm:
    return ScoreForm()


@score_form.register
def _(scorer: Concat) -> ScoreForm:
    return ScoreForm(weight=scorer.W.weight[:, : scorer.query_dim], v=scorer.v)


@score_form.register
def _(scorer: Additive) -> ScoreForm:
    weight = scorer.W.weight if isinstance(scorer.W, nn.Linear) else None
    return ScoreForm(weight=weight, v=scorer.v)


@score_form.register
def _(scorer: NormalisedAdditive) -> ScoreForm:
    return ScoreForm(scorer.W.weight, scorer.W.bias, scorer.vector())


@singledispatch
def inner_product_scale(scorer: Scorer) -> float | None:
    """Return c if the score is c qᵀk, or None."""
    return None


@inner_product_scale.register
def _(scorer: Dot) -> float:
    return 1.0


@inner_product_scale.register
def _(scorer: ScaledDot) -> float:
    return scorer.scale
