import math

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Mask
from zoo_alignment.exponential import Exponential
from zoo_alignment.soft import Soft
from zoo_location.location_window import LocationWindow


def test_two_steps_have_known_values():
    window = LocationWindow(query_dim=1, mixture_components=1).double()
    # alpha = 1, beta = 1/2, kappa increases by exp(q)
    window.load_state_dict(
        {
            "W_p.weight": torch.tensor([[0.0], [0.0], [1.0]]),
            "W_p.bias": torch.tensor([0.0, math.log(0.5), 0.0]),
        }
    )
    keys = torch.zeros(1, 3, 2).double()

    first, own = window.step(torch.zeros(1, 1, 1).double(), keys, window.init_state(keys))
    second, own = window.step(torch.full((1, 1, 1), math.log(2)).double(), keys, own)

    # kappa is 1, then 3; positions are 1, 2, 3
    expected = torch.tensor([[[0, -0.5, -2]]]).double()
    torch.testing.assert_close(first, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(second, expected.flip(-1), rtol=0, atol=1e-6)
    assert own["kappa"].tolist() == [[pytest.approx(3)]]


def test_steps_match_the_equations_as_loops():
    torch.manual_seed(0)
    window = LocationWindow(query_dim=3, mixture_components=2).double()
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


def test_kappa_increases():
    torch.manual_seed(0)
    window = LocationWindow(query_dim=3)
    keys = torch.randn(2, 5, 4)
    state = window.init_state(keys)

    for _ in range(5):
        _, after = window.step(torch.randn(2, 1, 3), keys, state)
        assert (after["kappa"] > state["kappa"]).all()
        state = after


def test_score_pairs_raises():
    with pytest.raises(ZooError, match="scorer 'location-window'"):
        LocationWindow(query_dim=3).score_pairs(torch.randn(3), torch.randn(4))


def test_a_projection_of_ignored_keys_raises():
    scorer, align = Blueprint.of(LocationWindow), Blueprint.of(Soft)
    with pytest.raises(ZooError, match=r"^scorer 'location-window'.*project: kv$"):
        Attention(query_dim=4, key_dim=4, scorer=scorer, align=align, project="qkv")

    multi_head = Attention(query_dim=4, key_dim=4, scorer=scorer, align=align, heads=2)
    assert multi_head.project == "kv"


def test_state_dict_keys():
    shapes = {
        key: tuple(value.shape)
        for key, value in LocationWindow(query_dim=3, mixture_components=2).state_dict().items()
    }

    assert shapes == {"W_p.weight": (6, 3), "W_p.bias": (6,)}


def test_version_1_is_migrated():
    params, _ = LocationWindow.migrate(1, {"bumps": 7}, {})
    assert params == {"mixture_components": 7}


def test_with_the_exponential_alignment_the_context_is_the_sum_of_phi_times_the_values():
    """Graves 2013, equations 46 to 51, as loops; the weights do not sum to 1."""
    torch.manual_seed(0)
    attention = Attention(
        query_dim=3,
        key_dim=4,
        scorer=Blueprint.of(LocationWindow, mixture_components=2),
        align=Blueprint.of(Exponential),
    ).double()
    W, bias = (p.tolist() for p in attention.scorers.first.W_p.parameters())
    query, states = torch.randn(2, 3, 3).double(), torch.randn(2, 5, 4).double()
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    state, sums = attention.init_state(attention.prepare(states)), []
    kappa = [[0.0, 0.0], [0.0, 0.0]]

    for t in range(3):
        context, state, _ = attention(query[:, t : t + 1], states, Mask(keys=mask), state=state)
        for b in range(2):
            q = query[b, t].tolist()
            hat = [bias[n] + sum(W[n][d] * q[d] for d in range(3)) for n in range(6)]
            kappa[b] = [kappa[b][k] + math.exp(hat[4 + k]) for k in range(2)]
            phi = [
                sum(
                    math.exp(hat[k]) * math.exp(-math.exp(hat[2 + k]) * (kappa[b][k] - u) ** 2)
                    for k in range(2)
                )
                * mask[b, u - 1].item()
                for u in range(1, 6)
            ]
            expected = sum(w * c for w, c in zip(phi, states[b], strict=True))
            torch.testing.assert_close(context[b, 0], expected, rtol=0, atol=1e-12)
            sums.append(sum(phi))
    assert min(sums) < 0.9
    assert max(sums) > 1.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_distinguishes_the_positions_of_long_inputs(dtype):
    window = LocationWindow(query_dim=1, mixture_components=1)
    torch.nn.init.zeros_(window.W_p.weight)
    torch.nn.init.zeros_(window.W_p.bias)  # alpha = beta = 1, kappa increases by 1
    window, keys = window.to(dtype), torch.zeros(1, 600, 2, dtype=dtype)
    state = window.init_state(keys)
    for _ in range(301):
        scores, state = window.step(torch.zeros(1, 1, 1, dtype=dtype), keys, state)

    assert scores.dtype == dtype
    assert scores.argmax().item() == 300
    assert scores.isfinite().all()
    scores.softmax(dim=-1)[..., 300].sum().backward()
    assert window.W_p.bias.grad.isfinite().all()
