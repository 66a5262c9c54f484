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


def test_names_of_all_items_are_counted_in_one_pool():
    # 2 names right, 1 given that is not true, 2 true that are not given: 2 * 2 / (3 + 4).
    assert micro_f1([[0, 3], [5]], [[3], [5, 1, 2]]) == 4 / 7


def test_neither_order_nor_repetition_of_names_matters():
    assert micro_f1([[3, 0, 3]], [[0, 3]]) == 1


def test_nothing_right_is_zero_and_nothing_at_all_has_no_value():
    assert micro_f1([[1], []], [[], [2]]) == 0
    metric = MicroF1()
    metric.update([[]], [[]])
    with pytest.raises(ZooError, match=r"^micro-f1 of no names has no value$"):
        metric.compute()
    with pytest.raises(ZooError, match="micro-f1: 1 predictions, but 2 references"):
        metric.update([[]], [[], []])


def test_the_value_equals_sklearns():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(0)
    for chance in (0.1, 0.5, 0.9):
        tables = [[[int(rng.random() < chance) for _ in range(7)] for _ in range(20)]
                  for _ in range(2)]  # fmt: skip
        predictions, references = (
            [[v for v, yes in enumerate(row) if yes] for row in table] for table in tables
        )
        expected = metrics.f1_score(tables[1], tables[0], average="micro")
        assert micro_f1(predictions, references) == pytest.approx(expected)


def test_it_scores_the_roles_that_gat_ppi_finds():
    changes = ["model={features: 6, classes: 5, encoder: {hidden: 4, output: 5}}"]
    spec = zoo.load_spec("gat-ppi", overrides=changes)
    (metric,) = (blueprint.build() for blueprint in spec.sections.metrics)
    model = zoo.compose("gat-ppi", overrides=changes).eval()
    outputs = model(model.example(2, 9, torch.Generator().manual_seed(0)))
    given, true = outputs.logits[outputs.mask] > 0, outputs.targets[outputs.mask] > 0

    metric.update(*([row.nonzero()[:, 0].tolist() for row in rows] for rows in (given, true)))

    expected = 2 * (given & true).sum() / (given.sum() + true.sum())
    assert metric.compute()["micro-f1"] == pytest.approx(expected.item())
