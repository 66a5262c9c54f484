import random

import pytest
import torch

from zoo import ZooError
from zoo_metrics.accuracy import Accuracy


def accuracy(predictions: list[list[int]], references: list[list[int]]) -> float:
    metric = Accuracy()
    metric.update(predictions, references)
    return metric.compute()["accuracy"]


def test_the_share_of_reference_tokens_that_are_right():
    # 2 of 3 tokens, then 1 of 2.
    assert accuracy([[4, 5, 9], [7, 8]], [[4, 5, 6], [7, 1]]) == (2 + 1) / (3 + 2)


def test_a_prediction_that_ends_early_misses_the_rest():
    assert accuracy([[4], []], [[4, 5, 6], [7]]) == 1 / 4


def test_tokens_beyond_the_references_end_do_not_count():
    assert accuracy([[4, 5, 6, 7, 8]], [[4, 5]]) == 1


def test_a_shifted_prediction_is_wrong_everywhere():
    assert accuracy([[1, 2, 3]], [[2, 3, 4]]) == 0


def test_the_value_equals_a_comparison_of_padded_tensors():
    rng = random.Random(0)
    predictions = [[rng.randrange(3) for _ in range(rng.randint(0, 6))] for _ in range(30)]
    references = [[rng.randrange(3) for _ in range(rng.randint(1, 6))] for _ in range(30)]

    # Predictions and references are padded differently, so that padding never agrees.
    left = torch.tensor([row + [-1] * (6 - len(row)) for row in predictions])
    right = torch.tensor([row + [-2] * (6 - len(row)) for row in references])
    expected = ((left == right).sum() / (right >= 0).sum()).item()

    assert accuracy(predictions, references) == pytest.approx(expected, abs=1e-6)
    assert Accuracy().reference(predictions, references) == {
        "accuracy": pytest.approx(expected, abs=1e-6)
    }


def test_no_tokens_have_no_accuracy():
    metric = Accuracy()
    metric.update([[1, 2]], [[]])

    with pytest.raises(ZooError, match=r"^accuracy of no tokens has no value$"):
        metric.compute()
