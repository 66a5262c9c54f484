import pytest
import torch

from zoo_gat.gat import Gat


def _build_scorer(**params):
    scorer = Gat(query_dim=2, key_dim=1, **params).double()
    state = {"u.weight": torch.tensor([[1.0, -2.0]]), "v.weight": torch.tensor([[3.0]])}
    if params.get("bias"):
        state |= {"u.bias": torch.tensor([0.5]), "v.bias": torch.tensor([-4.0])}
    scorer.load_state_dict(state)
    return scorer


QUERY = torch.tensor([[1.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
KEY = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        # u.q is -1 and 2, v.k is 3 and -3; negative sums are multiplied by the slope
        ({}, [[2.0, 0.2 * -4], [5.0, 0.2 * -1]]),
        ({"slope": 0.5}, [[2.0, -2.0], [5.0, -0.5]]),
        ({"bias": True}, [[0.2 * -1.5, 0.2 * -7.5], [1.5, 0.2 * -4.5]]),
    ],
)
def test_score_has_known_values(params, expected):
    scores = _build_scorer(**params)(QUERY, KEY)
    torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float64))


def test_edge_scores_have_known_values():
    scorer = _build_scorer()
    target, source = torch.tensor([1, 0, 1]), torch.tensor([0, 1, 1])
    scores = scorer(QUERY, KEY, edges=(target, source))
    torch.testing.assert_close(scores, torch.tensor([5.0, -0.8, -0.2], dtype=torch.float64))


def test_state_dict_shapes():
    shapes = {
        k: tuple(v.shape) for k, v in Gat(query_dim=3, key_dim=4, bias=True).state_dict().items()
    }
    assert shapes == {"u.weight": (1, 3), "u.bias": (1,), "v.weight": (1, 4), "v.bias": (1,)}
