import pytest

from zoo import ZooError
from zoo_metrics.matthews import Matthews


def value(predicted, expected):
    metric = Matthews()
    metric.update([[x] for x in predicted], [[x] for x in expected])
    return metric.compute()["matthews"]


def test_known_values():
    # TP 2, TN 1, FP 1, FN 0: (2 * 1 - 0) / sqrt(3 * 2 * 2 * 1).
    assert value([1, 1, 1, 0], [1, 1, 0, 0]) == pytest.approx(2 / 12**0.5)
    assert value([1, 1], [1, 0]) == 0.0


def test_missing_positions_are_incorrect_and_no_labels_raise():
    metric, filled = Matthews(), Matthews()
    metric.update([[0], [1, 1, 0]], [[0, 1], [1, 0]])
    filled.update([[0, 9], [1, 1]], [[0, 1], [1, 0]])
    assert metric.compute() == filled.compute()
    with pytest.raises(ZooError, match="no labels were added"):
        Matthews().compute()
