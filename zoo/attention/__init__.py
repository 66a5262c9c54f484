"""Attention: scorer, alignment and heads; recording of weights and samples."""

from zoo.attention.additive_scorer import AdditiveScorer
from zoo.attention.attention import Attended, Attention
from zoo.attention.recorder import RecordsAttention, recording
from zoo.attention.sample_recorder import find_stochastic, forbid_stochastic, record_samples
from zoo.attention.scorer_bank import ScorerBank

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
