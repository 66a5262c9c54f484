import math

import torch

from zoo_luong.concat import Concat


def test_score_has_known_values():
    concat = Concat(query_dim=1, key_dim=2, hidden=2).double()
    # W [q; k], with the query first
    concat.load_state_dict(
        {
            "W.weight": torch.tensor([[1.0, 3.0, 0.0], [2.0, -1.0, 0.5]]),
            "v": torch.tensor([0.5, 2.0]),
        }
    )

    scores = concat(
        torch.tensor([[0.1]], dtype=torch.float64),
        torch.tensor([[0.2, 1.0], [0.4, -1.0]], dtype=torch.float64),
    )

    # v . tanh(W [q; k])
    first = 0.5 * math.tanh(0.1 + 3 * 0.2) + 2 * math.tanh(2 * 0.1 - 0.2 + 0.5 * 1)
    second = 0.5 * math.tanh(0.1 + 3 * 0.4) + 2 * math.tanh(2 * 0.1 - 0.4 - 0.5 * 1)
    expected = torch.tensor([[first, second]], dtype=torch.float64)
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)


def test_scores_match_the_formula_as_loops():
    torch.manual_seed(0)
    concat = Concat(query_dim=3, key_dim=4, hidden=5).double()
    W, v = concat.W.weight.tolist(), concat.v.tolist()
    query = torch.randn(2, 3, 3, dtype=torch.float64)
    key = torch.randn(2, 6, 4, dtype=torch.float64)

    scores = concat(query, key)

    assert scores.shape == (2, 3, 6)
    for b in range(2):
        for t in range(3):
            for s in range(6):
                pair = query[b, t].tolist() + key[b, s].tolist()
                expected = sum(
                    v[n] * math.tanh(sum(W[n][d] * pair[d] for d in range(7))) for n in range(5)
                )
                assert abs(scores[b, t, s].item() - expected) < 1e-12


def test_state_dict_keys():
    shapes = {
        key: tuple(value.shape)
        for key, value in Concat(query_dim=3, key_dim=4, hidden=5).state_dict().items()
    }

    assert shapes == {"v": (5,), "W.weight": (5, 7)}


def test_hooks_on_the_projection_are_called_for_queries_and_keys():
    concat, calls = Concat(query_dim=3, key_dim=4, hidden=5), []
    concat.W.register_forward_hook(lambda module, args, output: calls.append(output.shape))

    concat(torch.randn(2, 3, 3), torch.randn(2, 6, 4))

    assert calls == [(2, 6, 5), (2, 3, 5)]
