import math

import pytest
import torch
import torch.nn.functional as F

from zoo.plugin import Mask, WidthConflict
from zoo_transformer.scaled_dot import ScaledDot


def test_the_score_is_the_inner_product_over_the_root_of_the_width():
    scores = ScaledDot(query_dim=4, key_dim=4)(
        torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[4.0, 3, 2, 1], [1, 0, 0, 1]])
    )

    # sqrt(4) = 2
    assert scores.tolist() == [[(4 + 6 + 6 + 4) / 2, (1 + 4) / 2]]


def test_scores_equal_the_papers_formula_written_as_loops():
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


def test_the_softmax_of_the_scores_mixes_values_as_torchs_attention_does():
    torch.manual_seed(0)
    query = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    key = torch.randn(2, 3, 6, 5, dtype=torch.float64)
    values = torch.randn(2, 3, 6, 5, dtype=torch.float64)

    context = F.softmax(ScaledDot(query_dim=5, key_dim=5)(query, key), dim=-1) @ values

    expected = F.scaled_dot_product_attention(query, key, values)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-12)


def test_the_fused_path_mixes_values_by_the_softmax_of_the_scores():
    torch.manual_seed(0)
    query = torch.randn(2, 2, 3, 5, dtype=torch.float64)
    key = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    values = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    keys = torch.tensor([[True, True, False, True], [True, False, False, False]])

    context = ScaledDot(query_dim=5, key_dim=5).fused(query, key, values, Mask(keys=keys))

    assert context.shape == (2, 2, 3, 5)
    for b in range(2):
        for h in range(2):
            for t in range(3):
                opened = [s for s in range(4) if keys[b, s]]
                raw = {
                    s: math.exp(float(query[b, h, t] @ key[b, h, s]) / math.sqrt(5)) for s in opened
                }
                expected = sum(raw[s] * values[b, h, s] for s in opened) / sum(raw.values())
                torch.testing.assert_close(context[b, h, t], expected, rtol=0, atol=1e-12)


def test_queries_and_keys_of_two_widths_are_refused():
    message = "^scaled-dot needs queries and keys of one width: query_dim is 4, key_dim is 6$"
    with pytest.raises(WidthConflict, match=message):
        ScaledDot(query_dim=4, key_dim=6)


def test_it_has_no_weights():
    assert list(ScaledDot(query_dim=4, key_dim=4).state_dict()) == []
