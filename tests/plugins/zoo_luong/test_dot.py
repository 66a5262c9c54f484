import math

import pytest
import torch

from zoo.plugin import Mask, WidthConflict
from zoo_luong.dot import Dot


def test_the_score_is_the_inner_product():
    scores = Dot(query_dim=3, key_dim=3)(
        torch.tensor([[1.0, 2, 3], [0, 1, 0]]), torch.tensor([[4.0, 5, 6], [-1, 0, 1]])
    )

    assert scores.tolist() == [
        [1 * 4 + 2 * 5 + 3 * 6, -1 + 3],
        [5, 0],
    ]


def test_scores_equal_the_papers_formula_written_as_loops():
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


def test_the_fused_path_mixes_values_by_the_softmax_of_the_scores():
    torch.manual_seed(0)
    query = torch.randn(2, 1, 3, 4, dtype=torch.float64)
    key = torch.randn(2, 1, 5, 4, dtype=torch.float64)
    values = torch.randn(2, 1, 5, 2, dtype=torch.float64)
    keys = torch.tensor([[True, True, False, True, False], [True, False, False, False, False]])

    context = Dot(query_dim=4, key_dim=4).fused(query, key, values, Mask(keys=keys))

    assert context.shape == (2, 1, 3, 2)
    for b in range(2):
        for t in range(3):
            opened = [s for s in range(5) if keys[b, s]]
            raw = {s: math.exp(float(query[b, 0, t] @ key[b, 0, s])) for s in opened}
            expected = sum(raw[s] * values[b, 0, s] for s in opened) / sum(raw.values())
            torch.testing.assert_close(context[b, 0, t], expected, rtol=0, atol=1e-12)


def test_queries_and_keys_of_two_widths_are_refused():
    message = "^dot needs queries and keys of one width: query_dim is 4, key_dim is 6$"
    with pytest.raises(WidthConflict, match=message):
        Dot(query_dim=4, key_dim=6)


def test_it_has_no_weights():
    assert list(Dot(query_dim=4, key_dim=4).state_dict()) == []
