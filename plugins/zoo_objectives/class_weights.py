"""Weights of classes in a loss."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from zoo import ZooError
from zoo.plugin import InvalidParameter, suggest

ClassWeights = Literal["balanced"] | list[float] | dict[str, float]


def check_weights(weights: Iterable[float]) -> None:
    """Raise ZooError if a weight is negative or not finite, or all are 0."""
    found = list(weights)
    wrong = next((w for w in found if not (math.isfinite(w) and w >= 0)), None)
    if wrong is not None or not any(found):
        raise ZooError(
            f"class_weights contains {found[0] if wrong is None else wrong}; weights must be "
            "finite, at least 0, and not all 0"
        )


def balanced(names: Sequence[str], ids: Iterable[int]) -> list[float]:
    """Return N / (C n_c) for each class, with n_c of N targets; 0 for a class without targets.

    C is the number of classes that occur.
    """
    counts = Counter(ids)
    total, classes = sum(counts.values()), len(counts)
    return [total / (classes * counts[i]) if counts[i] else 0.0 for i in range(len(names))]


def by_name(names: Sequence[str], weights: Mapping[str, float]) -> list[float]:
    """Return the weight of each class, 1 for those that are not named."""
    for name in weights:
        if name not in names:
            message = f"class_weights names the class '{name}'{suggest(name, names)}"
            raise InvalidParameter("class_weights", message)
    return [weights.get(name, 1.0) for name in names]
