import math

import pytest
import torch

from zoo import ZooError
from zoo.plugin import AlignmentContext
from zoo_alignment.local_p import LocalP


def test_weights_have_known_values():
    align = LocalP(query_dim=1, D=2).double()
    align.load_state_dict({"W_p.weight": torch.tensor([[1.0]]), "v_p": torch.tensor([1.0])})
    scores = torch.log(torch.tensor([[[[1.0, 2, 3, 4, 9]]]])).double()
    mask = torch.tensor([True, True, True, True, False])

    weights = align(scores, mask, AlignmentContext(torch.zeros(1, 1, 1, 1).double()))

    # p = 4 sigmoid(0) = 2, sigma = 1; the window is {0, 1, 2, 3}.
    gauss = [math.exp(-2), math.exp(-0.5), 1, math.exp(-0.5)]
    expected = [(s + 1) / 10 * g for s, g in enumerate(gauss)] + [0]
    torch.testing.assert_close(weights, torch.tensor([[[expected]]]).double(), rtol=0, atol=1e-7)
    assert not LocalP.normalised


@pytest.mark.parametrize("D", [1, 2, 4])
def test_weights_match_the_formula_as_loops(D):
    torch.manual_seed(0)
    align = LocalP(query_dim=3, D=D).double()
    W, v = align.W_p.weight.tolist(), (align.v_p * 3).tolist()
    align.v_p.data.mul_(3)
    scores, query = torch.randn(3, 2, 4, 6).double(), torch.randn(3, 2, 4, 3).double() * 3
    mask = torch.tensor(
        [
            [True] * 6,
            [True, True, True, False, False, False],
            [False, True, False, True, True, True],
        ]
    )

    weights = align(scores, mask[:, None, None], AlignmentContext(query))

    for b in range(3):
        valid = [s for s in range(6) if mask[b, s]]
        for h in range(2):
            for t in range(4):
                q = query[b, h, t].tolist()
                inner = [math.tanh(sum(W[i][j] * q[j] for j in range(3))) for i in range(3)]
                logit = sum(v[i] * inner[i] for i in range(3))
                p = len(valid) / (1 + math.exp(-logit))
                window = {s: k for k, s in enumerate(valid) if abs(k - p) <= D}
                total = sum(math.exp(scores[b, h, t, s]) for s in window)
                for s in range(6):
                    expected = 0.0
                    if s in window:
                        gauss = math.exp(-((window[s] - p) ** 2) / (2 * (D / 2) ** 2))
                        expected = math.exp(scores[b, h, t, s]) / total * gauss
                    assert abs(weights[b, h, t, s].item() - expected) < 1e-12


def test_predicted_position_has_gradients():
    torch.manual_seed(0)
    align = LocalP(query_dim=3, D=2).double()

    align(
        torch.randn(2, 1, 4, 6).double(), None, AlignmentContext(torch.randn(2, 1, 4, 3).double())
    )[..., 1].sum().backward()

    assert align.v_p.grad.abs().sum() > 0
    assert align.W_p.weight.grad.abs().sum() > 0


def test_a_missing_context_raises():
    with pytest.raises(ZooError, match="'local-p' requires a context"):
        LocalP(query_dim=3)(torch.zeros(2, 4))


def test_state_dict_keys():
    shapes = {k: tuple(v.shape) for k, v in LocalP(query_dim=3).state_dict().items()}

    assert shapes == {"v_p": (3,), "W_p.weight": (3, 3)}
