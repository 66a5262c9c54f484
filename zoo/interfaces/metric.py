"""Metric: how good predictions are."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from zoo.interfaces.component import Component


class Metric(Component, ABC):
    """Gathers predictions and references, then says how well they agree.

    What one prediction and one reference is, is the metric's to say, by `consumes`:

    - ``text``: a prediction is a text, its reference a list of one or more texts;
    - ``tokens``: each is a list of token ids;
    - ``logprobs``: a prediction is the list of log-probabilities that a model gave to the tokens
      of its reference, a list of token ids.

    Laws:
        merged shards equal the whole; the whole equals the reference computation; the example is
        of the form that `consumes` says.
    """

    kind: ClassVar[str] = "metric"
    consumes: ClassVar[Literal["text", "tokens", "logprobs"]] = "text"

    @abstractmethod
    def update(self, predictions: Sequence[Any], references: Sequence[Any]) -> None:
        """Take in more predictions, each with its reference."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in what another instance has gathered, on another worker say."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The value or values by name, of all that was gathered."""

    @abstractmethod
    def signature(self) -> str:
        """What makes two values comparable: library, version, tokenisation, case."""

    @abstractmethod
    def reference(self, predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, float]:
        """The same values by the reference library, or as plainly as can be."""

    @abstractmethod
    def example(self, count: int, rng: random.Random) -> tuple[list[Any], list[Any]]:
        """Random predictions and references for the laws."""
