"""Metric 'hamming-loss'."""

from zoo_metrics.hamming_loss import HammingLoss


def test_known_value():
    metric = HammingLoss(labels=4)
    metric.update([[0, 3], []], [[3], [1, 2]])  # 1 and 2 of 4 labels are wrong
    assert metric.compute() == {"hamming-loss": 3 / 8}
