"""Interface of metrics."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from zoo.interfaces.component import Component
from zoo.interfaces.contracts import Prediction


class Metric(Component, ABC):
    """Accumulates predictions and references and computes an evaluation result.

    `consumes` defines the type of a prediction and its reference:

    - ``text``: the prediction is a string, the reference a list of one or more strings;
    - ``tokens``: both are lists of token IDs or label IDs, compared position by position;
    - ``entities``: both are lists of (type, first position, end), which are read from tags such as
      B-PER, I-PER and O;
    - ``labels``: both are lists of label IDs in any order (label sets);
    - ``values``: both are lists of numbers;
    - ``logprobs``: the prediction is the list of log-probabilities that the model assigns to the
      tokens of the reference, a list of token IDs;
    - ``vectors``: the prediction is the vector of the first text of a pair, the reference that of
      the second, which belongs to it.

    Laws:
        merging instances equals updating a single one, also after pickling; `compute` equals
        `reference`; `example` returns the types that `consumes` defines.
    """

    kind: ClassVar[str] = "metric"
    consumes: ClassVar[Prediction] = "text"
    lower_is_better: ClassVar[bool] = False
    """Whether lower values are better, as of error rates."""

    @abstractmethod
    def update(self, predictions: Sequence[Any], references: Sequence[Any]) -> None:
        """Add predictions and their references."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add everything that another instance has accumulated, for example on another worker."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """Return the values by name, over everything accumulated."""

    def details(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return values that ``zoo eval`` prints as tables: title, row and column to value.

        By default none. They are not monitored in training.
        """
        return {}

    @abstractmethod
    def signature(self) -> str:
        """Return the settings that values depend on: library, version, tokenisation, case.

        Values with equal settings are comparable.
        """

    @abstractmethod
    def reference(self, predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, float]:
        """Compute the same values with a reference library or a direct implementation."""

    @abstractmethod
    def example(self, count: int, rng: random.Random) -> tuple[list[Any], list[Any]]:
        """Return random predictions and references for the laws."""


LOSS = "loss"
"""The name of the value of the objective."""


def is_lower_better(value: str, metrics: Iterable[Metric | type[Metric]]) -> bool:
    """Return whether lower values are better: of the loss, or as the metric declares.

    Args:
        value: ``loss``, the name of a metric, or of one of its values, such as ``chrf_2``.
    """
    return value == LOSS or any(
        metric.lower_is_better
        for metric in metrics
        if value == metric.name or value.startswith((f"{metric.name}_", f"{metric.name}-"))
    )
