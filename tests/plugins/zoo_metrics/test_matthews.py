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


def test_label_sets_raise():
    with pytest.raises(ZooError, match="must have one; for label sets use micro-f1"):
        Matthews().update([[0, 1]], [[0]])
    with pytest.raises(ZooError, match="no labels were added"):
        Matthews().compute()
