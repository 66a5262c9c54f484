import itertools
import math

import pytest
import torch

from zoo import Outputs
from zoo.plugin import Samples
from zoo_alignment.hard import Hard
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_objectives.reinforce import Reinforce


def outputs(seed: int = 0, B: int = 3, T: int = 4, V: int = 5) -> Outputs:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.tensor([[True] * T, [True] + [False] * (T - 1), [False] * T])[:B]
    return Outputs(
        torch.randn(B, T, V, generator=generator),
        torch.randint(V, (B, T), generator=generator),
        mask,
        Samples(-torch.rand(B, T, generator=generator), torch.rand(B, T, generator=generator)),
    )


def test_loss_of_a_known_case():
    # Two targets of one item, each with probability 1/4.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, math.log(3)]]])
    samples = Samples(torch.tensor([[-1.0, -0.5]]), torch.tensor([[0.2, 0.4]]))
    batch_outputs = Outputs(logits, torch.tensor([[0, 0]]), torch.ones(1, 2).bool(), samples)
    objective = Reinforce(lambda_r=0.5, lambda_e=0.1)
    objective.baseline.fill_(2.0)

    nll = 2 * math.log(4)
    expected = (nll + 0.5 * (nll - 2) * -1.5 - 0.1 * 0.6) / 2
    assert objective.reference(batch_outputs) == pytest.approx(expected, abs=1e-6)
    assert objective(batch_outputs).item() == pytest.approx(expected, abs=1e-6)


def test_reward_to_go_of_a_known_case():
    # Targets of probability 1/4 and 1/2: the first factor has both losses, the second its own.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, 0.0]]])
    samples = Samples(torch.tensor([[-1.0, -0.5]]), torch.zeros(1, 2))
    batch_outputs = Outputs(logits, torch.tensor([[0, 0]]), torch.ones(1, 2).bool(), samples)
    objective = Reinforce(reward_to_go=True)
    objective.baseline.fill_(0.5)

    nll = math.log(4) + math.log(2)
    expected = (nll + (nll - 0.5) * -1.0 + (math.log(2) - 0.25) * -0.5) / 2
    assert objective.reference(batch_outputs) == pytest.approx(expected, abs=1e-6)
    assert objective(batch_outputs).item() == pytest.approx(expected, abs=1e-6)


def test_without_samples_the_loss_is_the_cross_entropy():
    batch_outputs = outputs()
    plain = Outputs(batch_outputs.logits, batch_outputs.targets, batch_outputs.mask)

    assert Reinforce()(plain).item() == pytest.approx(CrossEntropy()(plain).item(), abs=1e-6)


@pytest.mark.parametrize("reward_to_go", [False, True])
def test_the_loss_in_evaluation_is_the_cross_entropy(reward_to_go):
    batch_outputs, objective = outputs(), Reinforce(reward_to_go=reward_to_go).eval()
    objective.baseline.fill_(7.0)
    expected = CrossEntropy()(batch_outputs).item()
    assert objective(batch_outputs).item() == pytest.approx(expected, abs=1e-6)
    assert objective.reference(batch_outputs) == pytest.approx(expected, abs=1e-6)


def test_the_reward_passes_no_gradient_to_the_logits():
    batch_outputs = outputs()
    logits, plain = (batch_outputs.logits.clone().requires_grad_() for _ in range(2))

    Reinforce()(
        Outputs(logits, batch_outputs.targets, batch_outputs.mask, batch_outputs.samples)
    ).backward()
    CrossEntropy()(Outputs(plain, batch_outputs.targets, batch_outputs.mask)).backward()

    torch.testing.assert_close(logits.grad, plain.grad)


def test_the_baseline_is_updated_in_training_only_and_after_its_use():
    objective, batch_outputs = Reinforce(), outputs()
    nll = [0.0, 0.0]
    for b in range(2):
        for t in range(4):
            if batch_outputs.mask[b, t]:
                logprobs = batch_outputs.logits[b, t].log_softmax(dim=-1)
                nll[b] -= logprobs[batch_outputs.targets[b, t]].item()
    mean = sum(nll) / 2  # the third item is fully masked

    first = objective.train()(batch_outputs)
    assert objective.baseline.item() == pytest.approx(0.1 * mean, abs=1e-6)
    second = objective(batch_outputs)
    updated = 0.9 * 0.1 * mean + 0.1 * mean
    assert objective.baseline.item() == pytest.approx(updated, abs=1e-6)
    assert first.item() != second.item()
    objective.eval()(batch_outputs)
    assert objective.baseline.item() == pytest.approx(updated, abs=1e-6)
    objective.train()(
        Outputs(
            batch_outputs.logits,
            batch_outputs.targets,
            batch_outputs.mask & False,
            batch_outputs.samples,
        )
    )
    assert objective.baseline.item() == pytest.approx(updated, abs=1e-6)


POSITIONS = list(itertools.product(range(3), range(3)))


def enumerable_problem(causal=False):
    """Return a problem of two steps that each sample one of three positions.

    If ``causal``, the second sample does not change the logits of the first step.

    Returns theta [2, 3], the logits [9, T, V] of each pair of samples, the targets, and the exact
    gradient of the expected cross-entropy.
    """
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    path_logits = 3 * torch.randn(9, 2, 4, generator=generator, dtype=torch.float64)
    if causal:
        path_logits[:, 0] = path_logits[::3, 0].repeat_interleave(3, dim=0)
    targets = torch.tensor([1, 3])
    p = theta.softmax(dim=-1)
    expected = 0
    for (s1, s2), logits in zip(POSITIONS, path_logits, strict=True):
        logprobs = logits.log_softmax(dim=-1)
        expected -= p[0, s1] * p[1, s2] * (logprobs[0, 1] + logprobs[1, 3]) / 2
    (exact,) = torch.autograd.grad(expected, theta)
    return theta.detach(), path_logits, targets, exact


@pytest.mark.parametrize("baseline", [0.0, 4.0])
def test_sampled_gradients_match_the_exact_one_within_their_standard_error(baseline):
    theta, path_logits, targets, exact = enumerable_problem()
    n = 20000
    torch.manual_seed(0)
    scores = theta.expand(n, 1, -1, -1).clone().requires_grad_()  # [B, H, T, S]

    weights, samples = Hard().train()(scores, return_samples=True)
    sampled = weights[:, 0].argmax(dim=-1)  # [B, T]
    objective = Reinforce(lambda_e=0.0).double()
    objective.baseline.fill_(baseline)
    batch_outputs = Outputs(
        path_logits[sampled[:, 0] * 3 + sampled[:, 1]],
        targets.expand(n, -1),
        torch.ones(n, 2, dtype=torch.bool),
        Samples(samples.logprob[:, 0], samples.entropy[:, 0]),
    )
    objective(batch_outputs).backward()

    estimates = n * scores.grad[:, 0]  # one per item
    error = estimates.std(dim=0) / n**0.5
    assert ((estimates.mean(dim=0) - exact).abs() < 3 * error).all()
    assert exact.abs().max() > 10 * error.max()  # the test has power


@pytest.mark.parametrize("reward_to_go", [False, True])
def test_the_mean_over_all_samples_is_the_exact_gradient(reward_to_go):
    theta, path_logits, targets, exact = enumerable_problem(causal=reward_to_go)
    theta.requires_grad_()
    objective = Reinforce(lambda_e=0.0, reward_to_go=reward_to_go).double()
    total = torch.zeros(2, 3, dtype=torch.float64)
    for (s1, s2), logits in zip(POSITIONS, path_logits, strict=True):
        logp = theta.log_softmax(dim=-1)
        logprob = torch.stack([logp[0, s1], logp[1, s2]])[None]
        samples = Samples(logprob, torch.zeros_like(logprob))
        mask = torch.ones(1, 2, dtype=torch.bool)
        objective.baseline.fill_(1.5)
        loss = objective(Outputs(logits[None], targets[None], mask, samples))
        total += logprob.sum().exp().detach() * torch.autograd.grad(loss, theta)[0]

    torch.testing.assert_close(total, exact, rtol=0, atol=1e-12)


def test_entropy_is_rewarded():
    batch_outputs = outputs()
    entropy = batch_outputs.samples.entropy.clone().requires_grad_()
    samples = Samples(batch_outputs.samples.logprob, entropy)

    Reinforce(lambda_e=0.3)(
        Outputs(batch_outputs.logits, batch_outputs.targets, batch_outputs.mask, samples)
    ).backward()

    expected = torch.where(batch_outputs.mask, -0.3 / 5, 0.0)
    torch.testing.assert_close(entropy.grad, expected)


def test_the_baseline_is_saved():
    assert {key: tuple(value.shape) for key, value in Reinforce().state_dict().items()} == {
        "baseline": ()
    }
