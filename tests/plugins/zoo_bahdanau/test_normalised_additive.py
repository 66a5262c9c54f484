import math

import pytest
import torch

from zoo.plugin import Attention, Blueprint
from zoo_alignment.monotonic import Monotonic
from zoo_bahdanau.normalised_additive import NormalisedAdditive


def test_score_has_known_values():
    scorer = NormalisedAdditive(query_dim=1, key_dim=1, hidden=2).double()
    scorer.load_state_dict(
        {
            "W.weight": torch.tensor([[1.0], [2.0]]),
            "W.bias": torch.tensor([0.25, -0.5]),
            "U.weight": torch.tensor([[3.0], [-1.0]]),
            "v": torch.tensor([3.0, 4.0]),
            "g": torch.tensor(2.0),
        }
    )
    query, key = torch.tensor([[0.1]]).double(), torch.tensor([[0.2], [-1.0]]).double()

    # v / |v| = (0.6, 0.8)
    expected = [
        2 * (0.6 * math.tanh(0.1 + 3 * k + 0.25) + 0.8 * math.tanh(2 * 0.1 - k - 0.5))
        for k in (0.2, -1.0)
    ]
    torch.testing.assert_close(
        scorer(query, key), torch.tensor([expected]).double(), rtol=0, atol=1e-7
    )


def raffel_energy(query, key, W, V, b, v, g, r):
    """Energy of one pair, in plain Python."""
    norm = math.sqrt(sum(x * x for x in v))
    total = r
    for n, v_n in enumerate(v):
        inner = b[n] + sum(w * q for w, q in zip(W[n], query, strict=True))
        inner += sum(w * k for w, k in zip(V[n], key, strict=True))
        total += g * v_n / norm * math.tanh(inner)
    return total


def test_with_monotonic_alignment_the_energy_is_that_of_the_paper():
    """The first query stops at key j with probability p_j prod_{l<j} (1 - p_l), p = sigmoid(e)."""
    torch.manual_seed(0)
    attention = Attention(
        query_dim=3,
        key_dim=4,
        scorer=Blueprint.of(NormalisedAdditive, hidden=5),
        align=Blueprint.of(Monotonic, mode="soft", r=-0.75),
    )
    attention = attention.double().eval()
    scorer = attention.scorers.first
    torch.nn.init.constant_(scorer.g, 1.5)
    parameters = [
        p.tolist() for p in (scorer.W.weight, scorer.U.weight, scorer.W.bias, scorer.v, scorer.g)
    ]
    query, states = torch.randn(2, 1, 3).double(), torch.randn(2, 6, 4).double()
    context = attention(query, states, state=attention.init_state(attention.prepare(states)))[0]

    for item in range(2):
        remaining, expected = 1.0, torch.zeros(4).double()
        for key in states[item]:
            energy = raffel_energy(query[item, 0].tolist(), key.tolist(), *parameters, -0.75)
            p = 1 / (1 + math.exp(-energy))
            expected += remaining * p * key
            remaining *= 1 - p
        torch.testing.assert_close(context[item, 0], expected, rtol=0, atol=1e-12)


def test_length_of_the_vector_has_no_effect():
    torch.manual_seed(0)
    scorer = NormalisedAdditive(query_dim=3, key_dim=4, hidden=5).double()
    query, key = torch.randn(2, 3).double(), torch.randn(6, 4).double()
    before = scorer(query, key)
    with torch.no_grad():
        scorer.v.mul_(7.0)
    torch.testing.assert_close(scorer(query, key), before)


def test_parameter_names_and_initial_gain():
    scorer = NormalisedAdditive(query_dim=3, key_dim=4, hidden=16)
    assert {name: tuple(p.shape) for name, p in scorer.named_parameters()} == {
        "W.weight": (16, 3),
        "W.bias": (16,),
        "U.weight": (16, 4),
        "v": (16,),
        "g": (),
    }
    assert scorer.g.item() == pytest.approx(0.25)
