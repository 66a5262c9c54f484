import pytest

from zoo import ZooError
from zoo_metrics.retrieval import Retrieval


def test_known_values():
    metric = Retrieval(k=[1, 2])
    # The second query is nearer to the first candidate than to its own: ranks 1, 2, 1.
    metric.update([[1.0, 0.0], [1.0, 0.2], [-1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0], [-1.0, 0.1]])
    assert metric.compute() == {
        "retrieval_mrr": pytest.approx((1 + 1 / 2 + 1) / 3),
        "retrieval_recall@1": pytest.approx(2 / 3),
        "retrieval_recall@2": 1.0,
    }


def test_equal_texts_do_not_lower_the_rank_and_no_pairs_raise():
    metric = Retrieval()
    metric.update([[1.0, 0.0]] * 3, [[1.0, 0.0]] * 3)
    assert metric.compute()["retrieval_mrr"] == 1.0
    with pytest.raises(ZooError, match="no pairs were added"):
        Retrieval().compute()
