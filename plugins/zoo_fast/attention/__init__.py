"""Accelerations of attention."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.attention.fused_attention import AdditiveAttention, InnerProductAttention
from zoo_fast.attention.projections import JointProjections
from zoo_fast.attention.scores import AdditiveScores, ConcatScores, NormalisedAdditiveScores

ACCELERATIONS: Sequence[type[Acceleration]] = (
    InnerProductAttention,
    AdditiveAttention,
    JointProjections,
    AdditiveScores,
    NormalisedAdditiveScores,
    ConcatScores,
)
