import math

import torch

from zoo_location.location import Location


def test_scores_have_known_values():
    location = Location(query_dim=1, key_dim=1, hidden=1, filters=1, kernel_radius=1).double()
    location.load_state_dict(
        {
            "W.weight": torch.tensor([[2.0]]),
            "V.weight": torch.tensor([[3.0]]),
            "V.bias": torch.tensor([0.1]),
            "U.weight": torch.tensor([[0.5]]),
            "F.weight": torch.tensor([[[1.0, 2.0, 4.0]]]),
            "w": torch.tensor([5.0]),
        }
    )
    query = torch.tensor([[[0.1]]]).double()
    prepared = location.prepare(torch.tensor([[[0.0], [0.1], [0.2]]]).double())
    before = {"weights": torch.tensor([[0.25, 0.75, 0.0]]).double()}

    scores, own = location.step(query, prepared, before)

    # f_j = alpha_{j-1} + 2 alpha_j + 4 alpha_{j+1}
    f = [2 * 0.25 + 4 * 0.75, 0.25 + 2 * 0.75, 0.75]
    expected = [5 * math.tanh(0.2 + 0.3 * j + 0.1 + 0.5 * f[j]) for j in range(3)]
    torch.testing.assert_close(scores, torch.tensor([[expected]]).double(), rtol=0, atol=1e-6)
    assert own == {}


def test_steps_match_the_equations_as_loops():
    torch.manual_seed(0)
    location = Location(query_dim=3, key_dim=4, hidden=5, filters=2, kernel_radius=2).double()
    W, V, U = (m.weight.tolist() for m in (location.W, location.V, location.U))
    b, w, F = location.V.bias.tolist(), location.w.tolist(), location.F.weight[:, 0].tolist()
    query = torch.randn(2, 1, 3, dtype=torch.float64)
    key = torch.randn(2, 6, 4, dtype=torch.float64)
    weights = torch.rand(2, 6, dtype=torch.float64)

    scores, _ = location.step(query, location.prepare(key), {"weights": weights})

    assert scores.shape == (2, 1, 6)
    for i in range(2):
        s, alpha = query[i, 0].tolist(), weights[i].tolist()
        for j in range(6):
            h = key[i, j].tolist()
            f = [
                sum(F[k][r + 2] * alpha[j + r] for r in range(-2, 3) if 0 <= j + r < 6)
                for k in range(2)
            ]
            expected = 0.0
            for n in range(5):
                inner = b[n] + sum(W[n][d] * s[d] for d in range(3))
                inner += sum(V[n][d] * h[d] for d in range(4))
                inner += sum(U[n][k] * f[k] for k in range(2))
                expected += w[n] * math.tanh(inner)
            assert abs(scores[i, 0, j].item() - expected) < 1e-12


def test_the_first_step_matches_score():
    torch.manual_seed(0)
    location = Location(query_dim=3, key_dim=4, hidden=5).double()
    query, key = torch.randn(2, 1, 3).double(), torch.randn(2, 6, 4).double()
    prepared = location.prepare(key)

    scores, _ = location.step(query, prepared, {"weights": torch.zeros(2, 6).double()})

    torch.testing.assert_close(scores, location(query, key), rtol=0, atol=1e-12)


def test_kernel_can_be_wider_than_the_sequence():
    location = Location(query_dim=3, key_dim=4)  # kernel_radius is 100

    scores, _ = location.step(
        torch.randn(2, 1, 3), location.prepare(torch.randn(2, 5, 4)), {"weights": torch.ones(2, 5)}
    )

    assert scores.shape == (2, 1, 5)


def test_state_dict_keys():
    location = Location(query_dim=3, key_dim=4, hidden=5, filters=2, kernel_radius=3)

    assert {key: tuple(value.shape) for key, value in location.state_dict().items()} == {
        "w": (5,),
        "W.weight": (5, 3),
        "V.weight": (5, 4),
        "V.bias": (5,),
        "U.weight": (5, 2),
        "F.weight": (2, 1, 7),
    }


def test_version_1_is_migrated():
    params, _ = Location.migrate(1, {"filters": 4, "reach": 7}, {})
    assert params == {"filters": 4, "kernel_radius": 7}
