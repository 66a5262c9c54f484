"""Forms of scores that kernels compute."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from zoo.plugin import Scorer
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.normalised_additive import NormalisedAdditive
from zoo_fast.by_class import ByClass
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


@ByClass
def score_form(scorer: Scorer) -> ScoreForm | None:
    """Return the score as a `ScoreForm`, or None if it has another form."""


@ByClass
def inner_product_scale(scorer: Scorer) -> float | None:
    """Return the factor c if the score is c q^T k with keys k, else None."""


@ByClass
def prepared_scale(scorer: Scorer) -> float | None:
    """Return the factor c if the score is c q^T p with prepared keys p, else None."""


@inner_product_scale.register(Dot)
@prepared_scale.register(Dot)
@prepared_scale.register(General)
def _one(scorer: Scorer) -> float:
    return 1.0


@inner_product_scale.register(ScaledDot)
@prepared_scale.register(ScaledDot)
def _scale(scorer: ScaledDot) -> float | None:
    return scorer.scale if scorer.cap is None else None


@score_form.register(Dot)
@score_form.register(General)
def _inner_product(scorer: Scorer) -> ScoreForm:
    return ScoreForm()


@score_form.register(Concat)
def _concat(scorer: Concat) -> ScoreForm:
    return ScoreForm(weight=scorer.W.weight[:, : scorer.query_dim], v=scorer.v)


@score_form.register(Additive)
def _additive(scorer: Additive) -> ScoreForm:
    weight = scorer.W.weight if isinstance(scorer.W, nn.Linear) else None
    return ScoreForm(weight=weight, v=scorer.v)


@score_form.register(NormalisedAdditive)
def _normalised_additive(scorer: NormalisedAdditive) -> ScoreForm:
    return ScoreForm(scorer.W.weight, scorer.W.bias, scorer.vector())
