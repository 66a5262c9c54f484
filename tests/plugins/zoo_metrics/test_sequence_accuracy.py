import random

import pytest

from zoo import ZooError
from zoo_metrics.sequence_accuracy import SequenceAccuracy


def accuracy(predictions: list[list[int]], references: list[list[int]]) -> float:
    metric = SequenceAccuracy()
    metric.update(predictions, references)
    return metric.compute()["sequence-accuracy"]


def test_known_value():
    predictions = [[1, 2, 3], [1, 2], [1, 2, 3, 4], [3, 2, 1], []]
    references = [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], []]

    # The first and the last; the others are too short, too long, and in another order.
    assert accuracy(predictions, references) == 2 / 5


def test_lists_and_tuples_are_equal():
    metric = SequenceAccuracy()
    metric.update([(1, 2)], [[1, 2]])

    assert metric.compute() == {"sequence-accuracy": 1}


def test_matches_a_comparison_of_strings():
    rng = random.Random(0)
    predictions, references = SequenceAccuracy().example(40, rng)

    equal = [str(p) == str(r) for p, r in zip(predictions, references, strict=True)]
    expected = sum(equal) / 40

    assert 0 < expected < 1
    assert accuracy(predictions, references) == pytest.approx(expected, abs=1e-12)
    assert SequenceAccuracy().reference(predictions, references) == {
        "sequence-accuracy": pytest.approx(expected, abs=1e-12)
    }


def test_no_sequences_raise():
    with pytest.raises(ZooError, match=r"sequence-accuracy.*0"):
        SequenceAccuracy().compute()
