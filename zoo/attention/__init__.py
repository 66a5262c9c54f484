"""Attention: scorer, alignment and heads; recording of weights and samples."""

from zoo.attention.additive import additive_scores
from zoo.attention.additive_attention import fused_additive
from zoo.attention.additive_scorer import AdditiveScorer
from zoo.attention.attention import Attention
from zoo.attention.fused import fused_softmax
from zoo.attention.joint_linear import split_bias
from zoo.attention.joint_memory import prepare_memories
from zoo.attention.recorder import RecordsAttention, recording
from zoo.attention.sample_recorder import find_stochastic, forbid_stochastic, record_samples
from zoo.attention.scorer_bank import ScorerBank

__all__ = [
    "AdditiveScorer",
    "Attention",
    "RecordsAttention",
    "ScorerBank",
    "additive_scores",
    "find_stochastic",
    "forbid_stochastic",
    "fused_additive",
    "fused_softmax",
    "prepare_memories",
    "record_samples",
    "recording",
    "split_bias",
]
