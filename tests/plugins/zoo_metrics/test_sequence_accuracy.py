import random

import pytest

from zoo import ZooError
from zoo_metrics.sequence_accuracy import SequenceAccuracy


def accuracy(predictions: list[list[int]], references: list[list[int]]) -> float:
    metric = SequenceAccuracy()
    metric.update(predictions, references)
    return metric.compute()["sequence-accuracy"]


def test_the_share_of_sequences_that_are_right_from_end_to_end():
    predictions = [[1, 2, 3], [1, 2], [1, 2, 3, 4], [3, 2, 1], []]
    references = [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], []]

    # The first and the last; the others are too short, too long, and in the wrong order.
    assert accuracy(predictions, references) == 2 / 5


def test_a_list_and_a_tuple_of_the_same_tokens_are_equal():
    metric = SequenceAccuracy()
    metric.update([(1, 2)], [[1, 2]])

    assert metric.compute() == {"sequence-accuracy": 1}


def test_the_value_equals_a_comparison_of_texts():
    rng = random.Random(0)
    predictions, references = SequenceAccuracy().example(40, rng)

    same = [str(p) == str(r) for p, r in zip(predictions, references, strict=True)]
    expected = sum(same) / 40

    assert 0 < expected < 1
    assert accuracy(predictions, references) == pytest.approx(expected, abs=1e-12)
    assert SequenceAccuracy().reference(predictions, references) == {
        "sequence-accuracy": pytest.approx(expected, abs=1e-12)
    }


def test_no_sequences_have_no_accuracy():
    with pytest.raises(ZooError, match=r"^sequence-accuracy of no sequences has no value$"):
        SequenceAccuracy().compute()
