import random

import pytest

from zoo import ZooError
from zoo_metrics.macro_f1 import MacroF1
from zoo_metrics.matthews import Matthews


def value(metric, predicted, expected):
    metric.update([[x] for x in predicted], [[x] for x in expected])
    return metric.compute()[metric.name]


def test_known_value():
    # F1 of class 0: 2 / 3; class 1: 0; class 2, which is only predicted: 0.
    assert value(MacroF1(), [0, 0, 2], [0, 1, 1]) == pytest.approx((2 / 3) / 3)


def test_matches_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(0)
    x, y = ([rng.randrange(4) for _ in range(30)] for _ in range(2))
    assert value(MacroF1(), x, y) == pytest.approx(metrics.f1_score(y, x, average="macro"))
    assert value(Matthews(), x, y) == pytest.approx(metrics.matthews_corrcoef(y, x))


def test_no_labels_raise():
    with pytest.raises(ZooError, match="macro-f1 has no value"):
        MacroF1().compute()
