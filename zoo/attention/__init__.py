"""Attention = scorer x alignment x heads, wherever it is used."""

from zoo.attention.attention import Attention
from zoo.attention.fused import fused_softmax
from zoo.attention.recorder import RecordsAttention, recording
from zoo.attention.sampling import find_stochastic, forbid_stochastic, record_samples

__all__ = [
    "Attention",
    "RecordsAttention",
    "find_stochastic",
    "forbid_stochastic",
    "fused_softmax",
    "record_samples",
    "recording",
]
