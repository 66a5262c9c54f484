"""Initialisers that violate a law, and the valid one they are based on."""

import random

import torch

from zoo.plugin import Weight
from zoo.testing.tiny import TinyInitialiser


class IgnoresSeed(TinyInitialiser):
    def fill(self, weight: Weight) -> None:
        weight.tensor.normal_(generator=torch.Generator().manual_seed(random.getrandbits(60)))


class HalfFilled(TinyInitialiser):
    def fill(self, weight: Weight) -> None:
        half = len(weight.tensor) // 2
        weight.tensor[:half].normal_(std=2**0.5)


class FillsNorms(TinyInitialiser):
    def __call__(self, weight: Weight) -> None:
        self.fill(weight)


class FillsPadding(TinyInitialiser):
    def __call__(self, weight: Weight) -> None:
        if self.changes(weight):
            self.fill(weight)


class WrongStd(TinyInitialiser):
    def fill(self, weight: Weight) -> None:
        weight.tensor.normal_(std=1.2)


class ShiftedMean(TinyInitialiser):
    def fill(self, weight: Weight) -> None:
        weight.tensor.normal_(mean=0.2, std=0.96**0.5)


# (law, broken component, valid component)
BROKEN = [
    ("seeded-values", IgnoresSeed, TinyInitialiser),
    ("declared-weights", HalfFilled, TinyInitialiser),
    ("declared-weights", FillsNorms, TinyInitialiser),
    ("padding-rows", FillsPadding, TinyInitialiser),
    ("declared-std", WrongStd, TinyInitialiser),
    ("declared-std", ShiftedMean, TinyInitialiser),
]
