import random

import pytest
import torch

import zoo
from zoo import ZooError
from zoo_metrics.micro_f1 import MicroF1


def micro_f1(predictions: list[list[int]], references: list[list[int]]) -> float:
    metric = MicroF1()
    metric.update(predictions, references)
    return metric.compute()["micro-f1"]


def test_known_value():
    # 2 correct labels, 3 predicted, 4 expected: 2 * 2 / (3 + 4).
    assert micro_f1([[0, 3], [5]], [[3], [5, 1, 2]]) == 4 / 7


def test_order_and_repetition_are_ignored():
    assert micro_f1([[3, 0, 3]], [[0, 3]]) == 1


def test_no_correct_labels_give_zero_and_no_labels_raise():
    assert micro_f1([[1], []], [[], [2]]) == 0
    metric = MicroF1()
    metric.update([[]], [[]])
    with pytest.raises(ZooError, match=r"micro-f1.*0"):
        metric.compute()
    with pytest.raises(ZooError, match=r"micro-f1.*0"):
        metric.reference([[]], [[]])
    with pytest.raises(ZooError, match=r"micro-f1.*1 predictions.*2 references"):
        metric.update([[]], [[], []])


def test_matches_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(0)
    for chance in (0.1, 0.5, 0.9):
        tables = [[[int(rng.random() < chance) for _ in range(7)] for _ in range(20)]
                  for _ in range(2)]  # fmt: skip
        predictions, references = (
            [[label for label, value in enumerate(row) if value] for row in table]
            for table in tables
        )
        expected = metrics.f1_score(tables[1], tables[0], average="micro")
        assert micro_f1(predictions, references) == pytest.approx(expected)


def test_scores_the_labels_of_gat_ppi():
    changes = ["model={features: 6, classes: 5, encoder: {hidden: 4, output: 5}}"]
    spec = zoo.load_spec("gat-ppi", overrides=changes)
    (metric,) = (blueprint.build() for blueprint in spec.sections.metrics)
    model = zoo.compose("gat-ppi", overrides=changes).eval()
    outputs = model(model.example(2, 9, torch.Generator().manual_seed(0)))
    predicted, expected = outputs.logits[outputs.mask] > 0, outputs.targets[outputs.mask] > 0

    metric.update(
        *([row.nonzero()[:, 0].tolist() for row in rows] for rows in (predicted, expected))
    )

    f1 = 2 * (predicted & expected).sum() / (predicted.sum() + expected.sum())
    assert metric.compute()["micro-f1"] == pytest.approx(f1.item())
