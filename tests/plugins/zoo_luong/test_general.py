import math

import torch
import torch.nn.functional as F

from zoo.plugin import Mask
from zoo_luong.general import General


def test_the_score_of_known_weights():
    general = General(query_dim=2, key_dim=2)
    general.load_state_dict({"W.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})

    scores = general(torch.tensor([[1.0, 0], [5, 10]]), torch.tensor([[0.0, 1], [7, 1]]))

    # W k is [2, 4] for the first key and [7 + 2, 21 + 4] for the second.
    assert scores.tolist() == [
        [1 * 2 + 0 * 4, 1 * 9 + 0 * 25],
        [5 * 2 + 10 * 4, 5 * 9 + 10 * 25],
    ]


def test_scores_equal_the_papers_formula_written_as_loops():
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


def test_pairs_equal_torchs_bilinear_form():
    torch.manual_seed(0)
    general = General(query_dim=3, key_dim=4).double()
    query = torch.randn(2, 6, 3, dtype=torch.float64)
    key = torch.randn(2, 6, 4, dtype=torch.float64)

    expected = F.bilinear(query, key, general.W.weight[None])[..., 0]

    torch.testing.assert_close(general.score_pairs(query, key), expected, rtol=0, atol=1e-12)


def test_the_fused_path_mixes_values_by_the_softmax_of_the_scores():
    torch.manual_seed(0)
    general = General(query_dim=3, key_dim=4).double()
    query = torch.randn(2, 1, 3, 3, dtype=torch.float64)
    key = torch.randn(2, 1, 5, 4, dtype=torch.float64)
    keys = torch.tensor([[True, True, False, True, False], [True, False, False, False, False]])

    context = general.fused(query, general.prepare(key), key, Mask(keys=keys))

    assert context.shape == (2, 1, 3, 4)
    W = general.W.weight.detach()
    for b in range(2):
        for t in range(3):
            opened = [s for s in range(5) if keys[b, s]]
            raw = {s: math.exp(float(query[b, 0, t] @ W @ key[b, 0, s])) for s in opened}
            expected = sum(raw[s] * key[b, 0, s] for s in opened) / sum(raw.values())
            torch.testing.assert_close(context[b, 0, t], expected, rtol=0, atol=1e-12)


def test_its_weights_are_named():
    shapes = {
        key: tuple(value.shape)
        for key, value in General(query_dim=3, key_dim=4).state_dict().items()
    }

    assert shapes == {"W.weight": (3, 4)}
