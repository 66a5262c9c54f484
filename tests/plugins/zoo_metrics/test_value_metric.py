"""Metrics of numbers: known values, and parity with scipy and scikit-learn."""

import math
import random

import pytest

from zoo import ZooError
from zoo_metrics.mae import MAE
from zoo_metrics.mse import MSE
from zoo_metrics.pearson import Pearson
from zoo_metrics.spearman import Spearman


def value(metric, predicted, expected):
    metric.update([[x] for x in predicted], [[x] for x in expected])
    return metric.compute()[metric.name]


def test_known_values():
    predicted, expected = [1.0, 2.0, 4.0], [1.0, 4.0, 3.0]
    assert value(MSE(), predicted, expected) == pytest.approx(5 / 3)
    assert value(MAE(), predicted, expected) == pytest.approx(1.0)
    assert value(Pearson(), [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(1.0)
    assert value(Spearman(), [1.0, 2.0, 3.0], [2.0, 4.0, 100.0]) == pytest.approx(1.0)
    assert value(Spearman(), predicted, expected) == pytest.approx(0.5)


def test_correlations_match_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(0)
    x, y = ([float(rng.randrange(6)) for _ in range(40)] for _ in range(2))
    assert value(Pearson(), x, y) == pytest.approx(stats.pearsonr(x, y)[0])
    assert value(Spearman(), x, y) == pytest.approx(stats.spearmanr(x, y)[0])


def test_constant_numbers_have_no_correlation_and_no_numbers_raise():
    assert math.isnan(value(Pearson(), [1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(value(Spearman(), [1.0, 2.0], [1.0, 1.0]))
    with pytest.raises(ZooError, match="mse has no value"):
        MSE().compute()
    with pytest.raises(ZooError, match="mae: a prediction has 2 numbers, but its reference has 1"):
        MAE().update([[1.0, 2.0]], [[1.0]])
