import math

import pytest
import torch
import torch.nn.functional as F

from zoo.plugin import WidthConflict
from zoo_transformer.scaled_dot import ScaledDot


def test_score_is_the_scaled_inner_product():
    scores = ScaledDot(query_dim=4, key_dim=4)(
        torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[4.0, 3, 2, 1], [1, 0, 0, 1]])
    )

    # sqrt(4) = 2
    assert scores.tolist() == [[(4 + 6 + 6 + 4) / 2, (1 + 4) / 2]]


def test_scores_match_the_formula_as_loops():
    torch.manual_seed(0)
    query = torch.randn(2, 3, 5, dtype=torch.float64)
    key = torch.randn(2, 6, 5, dtype=torch.float64)

    scores = ScaledDot(query_dim=5, key_dim=5)(query, key)

    assert scores.shape == (2, 3, 6)
    for b in range(2):
        for t in range(3):
            for s in range(6):
                inner = sum(query[b, t, d].item() * key[b, s, d].item() for d in range(5))
                assert abs(scores[b, t, s].item() - inner / math.sqrt(5)) < 1e-12


def test_attention_matches_torch_scaled_dot_product_attention():
    torch.manual_seed(0)
    query = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    key = torch.randn(2, 3, 6, 5, dtype=torch.float64)
    values = torch.randn(2, 3, 6, 5, dtype=torch.float64)

    context = F.softmax(ScaledDot(query_dim=5, key_dim=5)(query, key), dim=-1) @ values

    expected = F.scaled_dot_product_attention(query, key, values)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-12)


def test_unequal_widths_raise():
    with pytest.raises(WidthConflict, match=r"^scaled-dot .*query_dim is 4, key_dim is 6$"):
        ScaledDot(query_dim=4, key_dim=6)


def test_state_dict_is_empty():
    assert list(ScaledDot(query_dim=4, key_dim=4).state_dict()) == []


def test_scale_and_cap_have_known_values():
    query, key = torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0, 3.0]])
    scorer = ScaledDot(query_dim=2, key_dim=2, scale=0.5, cap=2.0)
    # The inner product is 10, half of it 5.
    expected = 2 * math.tanh(5 / 2)
    assert scorer(query, key).item() == pytest.approx(expected)
    assert scorer.score_pairs(query, key).item() == pytest.approx(expected)
    assert ScaledDot(query_dim=2, key_dim=2, scale=0.5)(query, key).item() == 5
