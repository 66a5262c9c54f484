"""Attention: scorer, alignment and heads; recording of weights and samples."""

from zoo.attention.attention import Attended, Attention
from zoo.attention.recorder import (
    RecordsAttention,
    find_stochastic,
    forbid_stochastic,
    record_samples,
    recording,
)
from zoo.attention.scorers import AdditiveScorer, ScorerBank

__all__ = [
    "AdditiveScorer",
    "Attended",
    "Attention",
    "RecordsAttention",
    "ScorerBank",
    "find_stochastic",
    "forbid_stochastic",
    "record_samples",
    "recording",
]
