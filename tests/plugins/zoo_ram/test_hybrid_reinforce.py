import math

import pytest
import torch
from torch.distributions import Normal

import zoo
from zoo import Outputs
from zoo_ram.hybrid_reinforce import HybridReinforce
from zoo_ram.policy import Policy


def outputs(logits, targets, logprob, baselines) -> Outputs:
    mask = torch.ones_like(targets, dtype=torch.bool)
    return Outputs(logits, targets, mask, extras={"logprob": logprob, "baselines": baselines})


def test_the_loss_of_a_case_worked_out_by_hand():
    # The right name has the chance 3/4 in the first item and 1/4 in the second.
    logits = torch.tensor([[[0.0, math.log(3)]], [[0.0, math.log(3)]]])
    given = outputs(
        logits,
        torch.tensor([[1], [0]]),
        torch.tensor([[-1.0, -0.5], [0.5, -2.0]]),
        torch.tensor([[0.5, 0.75], [0.25, 0.5]]),
    )

    right = math.log(4 / 3) - 0.1 * (0.5 * -1 + 0.25 * -0.5) + 2 * (0.25 + 0.0625)
    wrong = math.log(4) - 0.1 * (-0.25 * 0.5 + -0.5 * -2) + 2 * (0.0625 + 0.25)
    loss = HybridReinforce(lambda_r=0.1, lambda_b=2.0)(given)
    assert loss.item() == pytest.approx((right + wrong) / 2, abs=1e-6)


def test_each_part_of_the_loss_teaches_its_own():
    logits = torch.randn(2, 1, 3, requires_grad=True)
    logprob, baselines = (torch.randn(2, 4, requires_grad=True) for _ in range(2))
    given = outputs(logits, logits.argmax(dim=-1), logprob, baselines)

    HybridReinforce(lambda_r=0.5, lambda_b=0.25)(given).backward()

    error = 1 - baselines.detach()
    torch.testing.assert_close(logprob.grad, -0.5 * error / 2)
    torch.testing.assert_close(baselines.grad, -0.25 * 2 * error / 2)
    expected = (logits.detach().softmax(dim=-1) - logits.eq(logits.amax(-1, True)).float()) / 2
    torch.testing.assert_close(logits.grad, expected)


def test_a_model_that_draws_no_places_is_told_what_is_missing():
    plain = Outputs(torch.zeros(1, 1, 2), torch.zeros(1, 1).long(), torch.ones(1, 1).bool())
    message = (
        "^objective 'hybrid-reinforce' needs 'baselines' of the model, which gives nothing beside "
        "its logits$"
    )
    with pytest.raises(zoo.ZooError, match=message):
        HybridReinforce()(plain)


def test_in_bfloat16_it_is_computed_in_float32():
    given = HybridReinforce().examples()[0]
    extras = [tensor.float() for tensor in given.extras.values()]

    half = HybridReinforce()(outputs(given.logits.bfloat16(), given.targets, *extras))

    assert half.dtype is torch.float32
    full = HybridReinforce()(outputs(given.logits.float(), given.targets, *extras))
    assert half.item() == pytest.approx(full.item(), abs=0.01)


def policy_problem() -> tuple[Policy, torch.Tensor]:
    """Two looks, the second chosen after the first; right where x1 + x2 > 0.4 and y2 < 0.2.

    Gives the policy and the exact gradient of the expected reward with regard to its weights
    [2, 3] and biases [2]: the integral over x1 by fine quadrature, the others by erf. The state
    of the first draw is 0, of the second what the first look saw: its place, and 1.
    """
    generator = torch.Generator().manual_seed(3)
    policy = Policy(input_dim=3, std=0.4).double()
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / 2)
        policy.mean.weight[:, 1] = 0  # the height of the first look tells nothing: one integral
    normal = Normal(torch.zeros((), dtype=torch.float64), 1.0)
    mean = policy.mean.bias.tanh()
    noise = torch.linspace(-9, 9, 200_001, dtype=torch.float64)
    x1 = (mean[0].detach() + 0.4 * noise).requires_grad_(False)
    density = Normal(mean[0], 0.4).log_prob(x1).exp()
    seen = x1.clamp(-1, 1)
    states = torch.stack([seen, torch.zeros_like(seen), torch.ones_like(seen)], dim=-1)
    second = (states @ policy.mean.weight.T + policy.mean.bias).tanh()
    # A draw beyond the edge is a look at the edge: x2 is at most 1, so x1 must exceed -0.6.
    far_enough = normal.cdf((seen + second[:, 0] - 0.4) / 0.4) * (seen > -0.6)
    low_enough = normal.cdf((0.2 - second[:, 1]) / 0.4)
    right = torch.trapezoid(density * far_enough * low_enough, x1)
    gradients = torch.autograd.grad(right, policy.parameters())
    return policy, torch.cat([g.flatten() for g in gradients])


def test_its_gradient_is_that_of_the_expected_reward():
    policy, exact = policy_problem()
    B, rounds = 4000, 250
    generator = torch.Generator().manual_seed(0)
    objective = HybridReinforce(lambda_r=1.0, lambda_b=0.0)
    targets = torch.zeros(B, 1).long()
    estimates = []
    for _ in range(rounds):
        state = torch.zeros(B, 3, dtype=torch.float64)
        first, logprob1 = policy(state, True, generator)
        state = torch.stack([first[:, 0], torch.zeros(B), torch.ones(B)], dim=-1)
        second, logprob2 = policy(state, True, generator)
        right = (first[:, 0] + second[:, 0] > 0.4) & (second[:, 1] < 0.2)
        logits = torch.stack([right.double(), torch.full((B,), 0.5)], dim=-1)[:, None]
        # Any baseline that knows no more than the state leaves the mean as it is.
        baselines = torch.stack([torch.full((B,), 0.3), 0.5 + first[:, 0] / 2], dim=-1)
        logprob = torch.stack([logprob1, logprob2], dim=-1)
        loss = objective(outputs(logits, targets, logprob, baselines))
        gradients = torch.autograd.grad(-loss, policy.parameters())
        estimates.append(torch.cat([g.flatten() for g in gradients]))
    drawn = torch.stack(estimates)
    error = drawn.std(dim=0) / math.sqrt(rounds)
    told = error > 0  # nothing depends on a weight of a state that is always 0
    z = ((drawn.mean(dim=0) - exact) / error)[told]

    assert told.sum() == 6
    assert exact[~told].abs().max() == 0
    assert (exact[told].abs() / error[told]).median() > 30, "too noisy to tell right from wrong"
    assert z.abs().max() < 3.5, z


def test_without_the_density_of_the_first_draw_the_gradient_would_be_wrong():
    """The test above can fail: half of the log-density is off by many standard errors."""
    policy, exact = policy_problem()
    generator = torch.Generator().manual_seed(0)
    B = 1_000_000
    first, _ = policy(torch.zeros(B, 3, dtype=torch.float64), True, generator)
    state = torch.stack([first[:, 0], torch.zeros(B), torch.ones(B)], dim=-1)
    second, logprob = policy(state, True, generator)
    right = (first[:, 0] + second[:, 0] > 0.4) & (second[:, 1] < 0.2)
    gradients = torch.autograd.grad((right * logprob).mean(), policy.parameters())
    off = torch.cat([g.flatten() for g in gradients]) - exact

    assert off.abs().max() > 0.05
