import math

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_location.location_window import LocationWindow


def test_two_steps_of_known_weights():
    window = LocationWindow(query_dim=1, bumps=1).double()
    # alpha = 1, beta = 1/2, kappa moves by exp(q).
    window.load_state_dict(
        {
            "W_p.weight": torch.tensor([[0.0], [0.0], [1.0]]),
            "W_p.bias": torch.tensor([0.0, math.log(0.5), 0.0]),
        }
    )
    keys = torch.zeros(1, 3, 2).double()

    first, own = window.step(torch.zeros(1, 1, 1).double(), keys, window.init_state(keys))
    second, own = window.step(torch.full((1, 1, 1), math.log(2)).double(), keys, own)

    # kappa is 1, then 3; the places are 1, 2, 3.
    expected = torch.tensor([[[0, -0.5, -2]]]).double()
    torch.testing.assert_close(first, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(second, expected.flip(-1), rtol=0, atol=1e-6)
    assert own["kappa"].tolist() == [[pytest.approx(3)]]


def test_steps_equal_the_papers_equations_written_as_loops():
    torch.manual_seed(0)
    window = LocationWindow(query_dim=3, bumps=2).double()
    W, bias = window.W_p.weight.tolist(), window.W_p.bias.tolist()
    query, keys = torch.randn(2, 4, 3).double(), torch.randn(2, 5, 6).double()
    state = window.init_state(keys)
    kappa = [[0.0, 0.0], [0.0, 0.0]]

    for t in range(4):
        scores, state = window.step(query[:, t : t + 1], keys, state)
        assert scores.shape == (2, 1, 5)
        for b in range(2):
            q = query[b, t].tolist()
            hat = [bias[n] + sum(W[n][d] * q[d] for d in range(3)) for n in range(6)]
            kappa[b] = [kappa[b][k] + math.exp(hat[4 + k]) for k in range(2)]
            for u in range(1, 6):
                phi = sum(
                    math.exp(hat[k]) * math.exp(-math.exp(hat[2 + k]) * (kappa[b][k] - u) ** 2)
                    for k in range(2)
                )
                assert abs(scores[b, 0, u - 1].item() - math.log(phi)) < 1e-10


def test_it_never_moves_back():
    torch.manual_seed(0)
    window = LocationWindow(query_dim=3)
    keys = torch.randn(2, 5, 4)
    state = window.init_state(keys)

    for _ in range(5):
        _, after = window.step(torch.randn(2, 1, 3), keys, state)
        assert (after["kappa"] > state["kappa"]).all()
        state = after


def test_a_pair_has_no_place():
    with pytest.raises(ZooError, match="scorer 'location-window' scores places in a sequence"):
        LocationWindow(query_dim=3).score_pairs(torch.randn(3), torch.randn(4))


def test_a_projection_of_keys_that_it_ignores_is_refused():
    scorer, align = Blueprint.of(LocationWindow), Blueprint.of(Soft)
    message = "^scorer 'location-window' looks at places alone.*set project: kv$"
    with pytest.raises(ZooError, match=message):
        Attention(query_dim=4, key_dim=4, scorer=scorer, align=align, project="qkv")

    several = Attention(query_dim=4, key_dim=4, scorer=scorer, align=align, heads=2)
    assert several.project == "kv"


def test_its_weights_are_named():
    shapes = {
        key: tuple(value.shape)
        for key, value in LocationWindow(query_dim=3, bumps=2).state_dict().items()
    }

    assert shapes == {"W_p.weight": (6, 3), "W_p.bias": (6,)}
