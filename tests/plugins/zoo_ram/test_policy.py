import math

import pytest
import torch
from torch.distributions import Normal

from zoo_ram.policy import Policy


def build(mean=(0.3, -0.5), std: float = 0.2) -> Policy:
    """A policy with one mean for every state."""
    policy = Policy(input_dim=3, std=std).double()
    with torch.no_grad():
        policy.mean.weight.zero_()
        policy.mean.bias.copy_(torch.tensor(mean, dtype=torch.float64).atanh())
    return policy


def test_without_a_draw_it_looks_at_the_mean():
    places, logprob = build()(torch.zeros(2, 3, dtype=torch.float64), draw=False)

    expected = torch.tensor([[0.3, -0.5]] * 2, dtype=torch.float64)
    torch.testing.assert_close(places, expected)
    peak = -2 * math.log(0.2 * math.sqrt(2 * math.pi))
    assert logprob.tolist() == pytest.approx([peak, peak])
    assert not places.requires_grad


def test_draws_are_normal_around_the_mean_with_their_density():
    torch.manual_seed(0)
    states = torch.zeros(100_000, 3, dtype=torch.float64)

    places, logprob = build(mean=(0.0, 0.1), std=0.1)(states, draw=True)

    mean = torch.tensor([0.0, 0.1], dtype=torch.float64)
    torch.testing.assert_close(places.mean(dim=0), mean, rtol=0, atol=0.002)
    torch.testing.assert_close(places.std(dim=0), mean * 0 + 0.1, rtol=0, atol=0.002)
    inside = (places.abs() < 1).all(dim=1)
    expected = Normal(mean, 0.1).log_prob(places).sum(dim=1)
    torch.testing.assert_close(logprob[inside], expected[inside])


def test_a_draw_beyond_the_edge_is_a_look_at_the_edge():
    torch.manual_seed(0)
    policy = build(mean=(0.99, -0.99), std=0.5)

    places, logprob = policy(torch.zeros(1000, 3, dtype=torch.float64), draw=True)

    at_edge = (places.abs() == 1).all(dim=1)
    assert places.abs().max() == 1
    # The density is that of the draw, which differs from item to item, not of the edge.
    assert 100 < at_edge.sum() < 600
    assert logprob[at_edge].std() > 0.1


def test_the_default_generator_repeats_draws_and_a_given_one_does_not_touch_it():
    policy, states = build(), torch.zeros(4, 3, dtype=torch.float64)
    torch.manual_seed(5)
    first, again = policy(states, draw=True)[0], policy(states, draw=True)[0]
    torch.manual_seed(5)
    own = policy(states, True, torch.Generator().manual_seed(5))[0]
    second = policy(states, draw=True)[0]

    assert torch.equal(first, second)
    assert torch.equal(first, own)
    assert not torch.equal(first, again)


def test_its_entropy_is_the_normals():
    expected = 2 * Normal(0.0, 0.37).entropy().item()

    assert build(std=0.37).entropy == pytest.approx(expected)


def test_in_bfloat16_places_are_float32():
    places, logprob = build().bfloat16()(torch.zeros(2, 3).bfloat16(), draw=True)

    assert places.dtype is logprob.dtype is torch.float32
