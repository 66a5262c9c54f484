"""Metric 'exact-match'."""

import pytest

from zoo import ZooError
from zoo_metrics.exact_match import ExactMatch


@pytest.mark.parametrize(("lowercase", "value"), [(False, 1 / 4), (True, 2 / 4)])
def test_known_value(lowercase, value):
    metric = ExactMatch(lowercase=lowercase)
    metric.update(["R EH D", "a", "b c", ""], [["R IY D", "R EH  D"], ["A"], ["b"], ["x"]])
    assert metric.compute() == {"exact-match": value}


def test_without_texts_there_is_no_value():
    with pytest.raises(ZooError, match="exact-match has no value"):
        ExactMatch().compute()
