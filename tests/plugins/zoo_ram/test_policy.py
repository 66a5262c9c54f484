import math

import pytest
import torch
from torch.distributions import Normal

from zoo_ram.policy import Policy


def build(mean=(0.3, -0.5), std: float = 0.2) -> Policy:
    """Return a policy with one mean for all states."""
    policy = Policy(input_dim=3, std=std).double()
    with torch.no_grad():
        policy.mean.weight.zero_()
        policy.mean.bias.copy_(torch.tensor(mean, dtype=torch.float64).atanh())
    return policy


def test_without_sampling_the_location_is_the_mean():
    locations, logprob = build()(torch.zeros(2, 3, dtype=torch.float64), sample=False)

    expected = torch.tensor([[0.3, -0.5]] * 2, dtype=torch.float64)
    torch.testing.assert_close(locations, expected)
    peak = -2 * math.log(0.2 * math.sqrt(2 * math.pi))
    assert logprob.tolist() == pytest.approx([peak, peak])
    assert not locations.requires_grad


def test_samples_and_log_densities_are_normal():
    torch.manual_seed(0)
    states = torch.zeros(100_000, 3, dtype=torch.float64)

    locations, logprob = build(mean=(0.0, 0.1), std=0.1)(states, sample=True)

    mean = torch.tensor([0.0, 0.1], dtype=torch.float64)
    torch.testing.assert_close(locations.mean(dim=0), mean, rtol=0, atol=0.002)
    torch.testing.assert_close(locations.std(dim=0), mean * 0 + 0.1, rtol=0, atol=0.002)
    inside = (locations.abs() < 1).all(dim=1)
    expected = Normal(mean, 0.1).log_prob(locations).sum(dim=1)
    torch.testing.assert_close(logprob[inside], expected[inside])


def test_samples_outside_the_image_are_clamped():
    torch.manual_seed(0)
    policy = build(mean=(0.99, -0.99), std=0.5)

    locations, logprob = policy(torch.zeros(1000, 3, dtype=torch.float64), sample=True)

    at_edge = (locations.abs() == 1).all(dim=1)
    assert locations.abs().max() == 1
    # The density is that of the sample before clamping, which differs between items.
    assert 100 < at_edge.sum() < 600
    assert logprob[at_edge].std() > 0.1


def test_a_generator_argument_leaves_the_global_generator_unchanged():
    policy, states = build(), torch.zeros(4, 3, dtype=torch.float64)
    torch.manual_seed(5)
    first, again = policy(states, sample=True)[0], policy(states, sample=True)[0]
    torch.manual_seed(5)
    own = policy(states, True, torch.Generator().manual_seed(5))[0]
    second = policy(states, sample=True)[0]

    assert torch.equal(first, second)
    assert torch.equal(first, own)
    assert not torch.equal(first, again)


def test_entropy_matches_torch():
    expected = 2 * Normal(0.0, 0.37).entropy().item()

    assert build(std=0.37).entropy == pytest.approx(expected)


def test_bfloat16_states_give_float32_locations():
    locations, logprob = build().bfloat16()(torch.zeros(2, 3).bfloat16(), sample=True)

    assert locations.dtype is logprob.dtype is torch.float32
