"""What every metric asks of its input."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from zoo import ZooError

P = TypeVar("P")
R = TypeVar("R")


def zip_pairs(
    name: str, predictions: Sequence[P], references: Sequence[R]
) -> Iterator[tuple[P, R]]:
    """Each prediction with its reference; an error that counts both if one is missing."""
    if len(predictions) != len(references):
        raise ZooError(f"{name}: {len(predictions)} predictions, but {len(references)} references")
    return zip(predictions, references, strict=True)
