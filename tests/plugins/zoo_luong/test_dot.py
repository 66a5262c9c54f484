import pytest
import torch

from zoo.plugin import WidthConflict
from zoo_luong.dot import Dot


def test_score_is_the_inner_product():
    scores = Dot(query_dim=3, key_dim=3)(
        torch.tensor([[1.0, 2, 3], [0, 1, 0]]), torch.tensor([[4.0, 5, 6], [-1, 0, 1]])
    )

    assert scores.tolist() == [
        [1 * 4 + 2 * 5 + 3 * 6, -1 + 3],
        [5, 0],
    ]


def test_scores_match_the_formula_as_loops():
    torch.manual_seed(0)
    query = torch.randn(2, 3, 4, dtype=torch.float64)
    key = torch.randn(2, 5, 4, dtype=torch.float64)

    scores = Dot(query_dim=4, key_dim=4)(query, key)

    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for t in range(3):
            for s in range(5):
                expected = sum(query[b, t, d].item() * key[b, s, d].item() for d in range(4))
                assert abs(scores[b, t, s].item() - expected) < 1e-12


def test_unequal_widths_raise():
    with pytest.raises(WidthConflict, match=r"^dot .*query_dim is 4, key_dim is 6$"):
        Dot(query_dim=4, key_dim=6)


def test_state_dict_is_empty():
    assert list(Dot(query_dim=4, key_dim=4).state_dict()) == []
