import torch
import torch.nn.functional as F

from zoo_luong.general import General


def test_score_has_known_values():
    general = General(query_dim=2, key_dim=2)
    general.load_state_dict({"W.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})

    scores = general(torch.tensor([[1.0, 0], [5, 10]]), torch.tensor([[0.0, 1], [7, 1]]))

    # W k is [2, 4] for the first key and [7 + 2, 21 + 4] for the second.
    assert scores.tolist() == [
        [1 * 2 + 0 * 4, 1 * 9 + 0 * 25],
        [5 * 2 + 10 * 4, 5 * 9 + 10 * 25],
    ]


def test_scores_match_the_formula_as_loops():
    torch.manual_seed(0)
    general = General(query_dim=3, key_dim=4).double()
    W = general.W.weight.tolist()
    query = torch.randn(2, 3, 3, dtype=torch.float64)
    key = torch.randn(2, 5, 4, dtype=torch.float64)

    scores = general(query, key)

    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for t in range(3):
            for s in range(5):
                expected = sum(
                    query[b, t, i].item() * W[i][j] * key[b, s, j].item()
                    for i in range(3)
                    for j in range(4)
                )
                assert abs(scores[b, t, s].item() - expected) < 1e-12


def test_score_pairs_matches_torch_bilinear():
    torch.manual_seed(0)
    general = General(query_dim=3, key_dim=4).double()
    query = torch.randn(2, 6, 3, dtype=torch.float64)
    key = torch.randn(2, 6, 4, dtype=torch.float64)

    expected = F.bilinear(query, key, general.W.weight[None])[..., 0]

    torch.testing.assert_close(general.score_pairs(query, key), expected, rtol=0, atol=1e-12)


def test_state_dict_keys():
    shapes = {
        key: tuple(value.shape)
        for key, value in General(query_dim=3, key_dim=4).state_dict().items()
    }

    assert shapes == {"W.weight": (3, 4)}
