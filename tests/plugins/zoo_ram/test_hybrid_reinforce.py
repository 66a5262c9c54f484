import math

import pytest
import torch
from torch.distributions import Normal

import zoo
from zoo import Outputs
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_ram.hybrid_reinforce import HybridReinforce
from zoo_ram.policy import Policy


def make_outputs(logits, targets, logprob, baselines) -> Outputs:
    mask = torch.ones_like(targets, dtype=torch.bool)
    return Outputs(logits, targets, mask, extras={"logprob": logprob, "baselines": baselines})


def test_known_value():
    # The target has probability 3/4 in the first item and 1/4 in the second.
    logits = torch.tensor([[[0.0, math.log(3)]], [[0.0, math.log(3)]]])
    outputs = make_outputs(
        logits,
        torch.tensor([[1], [0]]),
        torch.tensor([[-1.0, -0.5], [0.5, -2.0]]),
        torch.tensor([[0.5, 0.75], [0.25, 0.5]]),
    )

    correct = math.log(4 / 3) - 0.1 * (0.5 * -1 + 0.25 * -0.5) + 2 * (0.25 + 0.0625)
    incorrect = math.log(4) - 0.1 * (-0.25 * 0.5 + -0.5 * -2) + 2 * (0.0625 + 0.25)
    loss = HybridReinforce(lambda_r=0.1, lambda_b=2.0)(outputs)
    assert loss.item() == pytest.approx((correct + incorrect) / 2, abs=1e-6)


def test_the_loss_in_evaluation_is_the_cross_entropy():
    for outputs in HybridReinforce().examples():
        expected = [
            CrossEntropy()(Outputs(logits[None], targets[None], mask[None])) * mask.sum()
            for logits, targets, mask in zip(
                outputs.logits, outputs.targets, outputs.mask, strict=True
            )
            if mask.any()
        ]
        loss = HybridReinforce().eval()(outputs)
        torch.testing.assert_close(loss, torch.stack(expected).mean())


def test_gradients_of_each_term():
    logits = torch.randn(2, 1, 3, requires_grad=True)
    logprob, baselines = (torch.randn(2, 4, requires_grad=True) for _ in range(2))
    outputs = make_outputs(logits, logits.argmax(dim=-1), logprob, baselines)

    HybridReinforce(lambda_r=0.5, lambda_b=0.25)(outputs).backward()

    error = 1 - baselines.detach()
    torch.testing.assert_close(logprob.grad, -0.5 * error / 2)
    torch.testing.assert_close(baselines.grad, -0.25 * 2 * error / 2)
    expected = (logits.detach().softmax(dim=-1) - logits.eq(logits.amax(-1, True)).float()) / 2
    torch.testing.assert_close(logits.grad, expected)


def test_missing_extras_raise():
    plain = Outputs(torch.zeros(1, 1, 2), torch.zeros(1, 1).long(), torch.ones(1, 1).bool())
    with pytest.raises(zoo.ZooError, match=r"'hybrid-reinforce'.*'logprob'"):
        HybridReinforce()(plain)


def test_bfloat16_logits_are_computed_in_float32():
    outputs = HybridReinforce().examples()[0]
    extras = [tensor.float() for tensor in outputs.extras.values()]

    half = HybridReinforce()(make_outputs(outputs.logits.bfloat16(), outputs.targets, *extras))

    assert half.dtype is torch.float32
    full = HybridReinforce()(make_outputs(outputs.logits.float(), outputs.targets, *extras))
    assert half.item() == pytest.approx(full.item(), abs=0.01)


def policy_problem() -> tuple[Policy, torch.Tensor]:
    """Two glimpses, the second conditioned on the first; correct if x1 + x2 > 0.4 and y2 < 0.2.

    Return the policy and the exact gradient of the expected reward with respect to its weights
    [2, 3] and biases [2]: the integral over x1 by quadrature, the others by erf. The state of the
    first sample is 0; that of the second is the first location, and 1.
    """
    generator = torch.Generator().manual_seed(3)
    policy = Policy(input_dim=3, std=0.4).double()
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / 2)
        policy.mean.weight[:, 1] = 0  # y1 has no effect, which leaves one integral
    normal = Normal(torch.zeros((), dtype=torch.float64), 1.0)
    mean = policy.mean.bias.tanh()
    noise = torch.linspace(-9, 9, 200_001, dtype=torch.float64)
    x1 = (mean[0].detach() + 0.4 * noise).requires_grad_(False)
    density = Normal(mean[0], 0.4).log_prob(x1).exp()
    clamped = x1.clamp(-1, 1)
    states = torch.stack([clamped, torch.zeros_like(clamped), torch.ones_like(clamped)], dim=-1)
    second = (states @ policy.mean.weight.T + policy.mean.bias).tanh()
    # Samples are clamped: x2 is at most 1, so x1 must exceed -0.6.
    x_correct = normal.cdf((clamped + second[:, 0] - 0.4) / 0.4) * (clamped > -0.6)
    y_correct = normal.cdf((0.2 - second[:, 1]) / 0.4)
    expected_reward = torch.trapezoid(density * x_correct * y_correct, x1)
    gradients = torch.autograd.grad(expected_reward, policy.parameters())
    return policy, torch.cat([g.flatten() for g in gradients])


def test_gradient_is_unbiased():
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
        correct = (first[:, 0] + second[:, 0] > 0.4) & (second[:, 1] < 0.2)
        logits = torch.stack([correct.double(), torch.full((B,), 0.5)], dim=-1)[:, None]
        # A baseline that depends on the state only does not change the mean.
        baselines = torch.stack([torch.full((B,), 0.3), 0.5 + first[:, 0] / 2], dim=-1)
        logprob = torch.stack([logprob1, logprob2], dim=-1)
        loss = objective(make_outputs(logits, targets, logprob, baselines))
        gradients = torch.autograd.grad(-loss, policy.parameters())
        estimates.append(torch.cat([g.flatten() for g in gradients]))
    samples = torch.stack(estimates)
    error = samples.std(dim=0) / math.sqrt(rounds)
    varies = error > 0  # the weight of a state that is always 0 has no gradient
    z = ((samples.mean(dim=0) - exact) / error)[varies]

    assert varies.sum() == 6
    assert exact[~varies].abs().max() == 0
    assert (exact[varies].abs() / error[varies]).median() > 30, (
        "the estimate is too noisy for the test"
    )
    assert z.abs().max() < 3.5, z


def test_gradient_without_the_first_log_density_is_biased():
    """Shows that `test_gradient_is_unbiased` detects a missing log-density."""
    policy, exact = policy_problem()
    generator = torch.Generator().manual_seed(0)
    B = 1_000_000
    first, _ = policy(torch.zeros(B, 3, dtype=torch.float64), True, generator)
    state = torch.stack([first[:, 0], torch.zeros(B), torch.ones(B)], dim=-1)
    second, logprob = policy(state, True, generator)
    correct = (first[:, 0] + second[:, 0] > 0.4) & (second[:, 1] < 0.2)
    gradients = torch.autograd.grad((correct * logprob).mean(), policy.parameters())
    bias = torch.cat([g.flatten() for g in gradients]) - exact

    assert bias.abs().max() > 0.05


def test_the_weight_is_the_number_of_items_that_are_not_masked():
    objective = HybridReinforce()
    assert [objective.weight(outputs).item() for outputs in objective.examples()] == [3, 3]
