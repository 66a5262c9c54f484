"""Modules that break the laws of modules."""

import torch
from torch import nn

from zoo.plugin import FromParent
from zoo.testing.tiny import TinyScorer
from zoo_bahdanau.additive import Additive


class ResetDoesNothing(Additive):
    def reset_parameters(self) -> None:
        pass


class ResetReplacesParameter(Additive):
    def reset_parameters(self) -> None:
        self.v = nn.Parameter(torch.zeros_like(self.v))


class WithoutReset(TinyScorer):
    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.scale = nn.Parameter(torch.ones(()))


BROKEN = [
    ("reset-parameters", ResetDoesNothing, Additive),
    ("reset-parameters", ResetReplacesParameter, Additive),
    ("reset-parameters", WithoutReset, TinyScorer),
]
