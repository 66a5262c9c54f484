"""Validation of metric inputs."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from zoo import ZooError

P = TypeVar("P")
R = TypeVar("R")


def zip_pairs(
    name: str, predictions: Sequence[P], references: Sequence[R]
) -> Iterator[tuple[P, R]]:
    """Return each prediction with its reference; raise ZooError if their numbers differ."""
    if len(predictions) != len(references):
        raise ZooError(
            f"{name}: there are {len(predictions)} predictions, but {len(references)} references"
        )
    return zip(predictions, references, strict=True)
