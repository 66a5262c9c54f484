"""Spearman rank correlation."""

import itertools
import statistics
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from zoo_metrics.pearson import correlation
from zoo_metrics.value_metric import Numbers, ValueMetric


class Spearman(ValueMetric):
    r"""Spearman correlation: the Pearson correlation of the ranks of numbers.

    .. math:: \rho = r(\mathrm{rank}(\hat y), \mathrm{rank}(y))

    Equal numbers have the mean of their ranks. NaN if all predictions or all references are equal.

    Shapes:
        N lists of numbers, N lists of numbers -> {spearman: from -1 to 1}.
    """

    name: ClassVar[str] = "spearman"
    paper: ClassVar[str] = (
        "Spearman 1904, The proof and measurement of association between two things"
    )

    def score(self, predicted: Numbers, expected: Numbers) -> float:
        return correlation(ranks(predicted), ranks(expected))

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> dict[str, float]:
        ranked = []
        for rows in (predictions, references):
            flat = list(itertools.chain(*rows))
            below = [sum(b < a for b in flat) for a in flat]
            ranked.append([n + (flat.count(a) + 1) / 2 for n, a in zip(below, flat, strict=True)])
        return {self.name: statistics.correlation(*ranked)}


def ranks(values: Numbers) -> Numbers:
    """Return the ranks [N] of values [N], from 1; equal values have the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    mean: Numbers = last - (counts - 1) / 2
    return mean[group]
