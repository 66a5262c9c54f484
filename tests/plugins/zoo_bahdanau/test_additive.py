import math

import torch

from zoo_bahdanau.additive import Additive


def test_score_has_known_values():
    additive = Additive(query_dim=1, key_dim=2, hidden=2).double()
    additive.load_state_dict(
        {
            "W.weight": torch.tensor([[1.0], [2.0]]),
            "U.weight": torch.tensor([[3.0, 0.0], [-1.0, 0.5]]),
            "v": torch.tensor([0.5, 2.0]),
        }
    )

    scores = additive(
        torch.tensor([[0.1]], dtype=torch.float64),
        torch.tensor([[0.2, 1.0], [0.0, -1.0]], dtype=torch.float64),
    )

    # v . tanh(W q + U k)
    first = 0.5 * math.tanh(0.1 + 3 * 0.2) + 2 * math.tanh(2 * 0.1 - 0.2 + 0.5 * 1)
    second = 0.5 * math.tanh(0.1 + 0) + 2 * math.tanh(2 * 0.1 - 0 - 0.5 * 1)
    expected = torch.tensor([[first, second]], dtype=torch.float64)
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)


def test_scores_match_the_formula_as_loops():
    torch.manual_seed(0)
    additive = Additive(query_dim=3, key_dim=4, hidden=5).double()
    W, U, v = (w.tolist() for w in (additive.W.weight, additive.U.weight, additive.v))
    query = torch.randn(2, 3, 3, dtype=torch.float64)
    key = torch.randn(2, 6, 4, dtype=torch.float64)

    scores = additive(query, key)

    assert scores.shape == (2, 3, 6)
    for b in range(2):
        for t in range(3):
            for s in range(6):
                expected = 0.0
                for n in range(5):
                    inner = sum(W[n][d] * query[b, t, d].item() for d in range(3))
                    inner += sum(U[n][d] * key[b, s, d].item() for d in range(4))
                    expected += v[n] * math.tanh(inner)
                assert abs(scores[b, t, s].item() - expected) < 1e-12


def test_state_dict_keys():
    shapes = {
        key: tuple(value.shape)
        for key, value in Additive(query_dim=3, key_dim=4, hidden=5).state_dict().items()
    }

    assert shapes == {"v": (5,), "W.weight": (5, 3), "U.weight": (5, 4)}


def test_score_without_projections_has_known_values():
    additive = Additive(query_dim=2, key_dim=2, project=False).double()
    additive.load_state_dict({"v": torch.tensor([0.5, 2.0])})
    query = torch.tensor([[0.1, -0.3]], dtype=torch.float64)
    key = torch.tensor([[0.2, 1.0], [0.0, -1.0]], dtype=torch.float64)

    first = 0.5 * math.tanh(0.1 + 0.2) + 2 * math.tanh(-0.3 + 1.0)
    second = 0.5 * math.tanh(0.1) + 2 * math.tanh(-0.3 - 1.0)
    expected = torch.tensor([[first, second]], dtype=torch.float64)
    torch.testing.assert_close(additive(query, key), expected, rtol=0, atol=1e-12)


def test_default_width_of_the_hidden_layer():
    assert Additive(query_dim=3, key_dim=4).v.shape == (128,)
    assert Additive(query_dim=3, key_dim=3, project=False).v.shape == (3,)
