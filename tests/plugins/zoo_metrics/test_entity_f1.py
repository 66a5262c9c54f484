import pytest

from zoo_metrics.entity_f1 import EntityF1


def test_known_values_and_those_of_each_type():
    metric = EntityF1()
    metric.update([[("A", 0, 2), ("B", 3, 4)], [("A", 0, 1)]], [[("A", 0, 2)], [("A", 0, 2)]])
    assert metric.compute() == {
        "entity-f1": pytest.approx(2 / 5),
        "entity-f1_precision": pytest.approx(1 / 3),
        "entity-f1_recall": 0.5,
    }
    rows = metric.details()["entities"]
    assert rows["A"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "targets": 2}
    assert rows["B"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "targets": 0}


def test_no_entities_give_zero():
    metric = EntityF1()
    metric.update([[]], [[]])
    assert set(metric.compute().values()) == {0.0}
    assert metric.details() == {}
