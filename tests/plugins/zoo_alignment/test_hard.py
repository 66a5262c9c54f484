import math

import pytest
import torch
from torch.distributions import Categorical

from zoo_alignment.hard import Hard


def test_evaluation_takes_the_likeliest_open_key():
    scores = torch.tensor([[0.0, 3.0, 5.0], [2.0, 1.0, 0.0]])
    mask = torch.tensor([True, True, False])

    assert Hard().eval()(scores, mask).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_choices_of_scores_worked_out_by_hand():
    scores = torch.tensor([[0.0, math.log(3), 7.0]], dtype=torch.float64)
    mask = torch.tensor([True, True, False])

    _, samples = Hard().eval()(scores, mask, return_samples=True)

    # Chances 1/4 and 3/4.
    assert samples.logprob.tolist() == pytest.approx([math.log(3 / 4)])
    expected = -(math.log(1 / 4) / 4 + 3 / 4 * math.log(3 / 4))
    assert samples.entropy.tolist() == pytest.approx([expected])


def test_choices_and_their_gradients_equal_those_of_torchs_distribution():
    torch.manual_seed(0)
    own = torch.randn(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    torchs = own.detach().clone().requires_grad_()

    weights, samples = Hard().train()(own, return_samples=True)
    expected = Categorical(logits=torchs)
    logprob = expected.log_prob(weights.argmax(dim=-1))
    (samples.logprob + samples.entropy.square()).sum().backward()
    (logprob + expected.entropy().square()).sum().backward()

    torch.testing.assert_close(samples.logprob, logprob, rtol=0, atol=1e-12)
    torch.testing.assert_close(samples.entropy, expected.entropy(), rtol=0, atol=1e-12)
    torch.testing.assert_close(own.grad, torchs.grad, rtol=0, atol=1e-12)


def test_one_seed_draws_the_same():
    scores = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(Hard().train()(scores))

    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_no_gradient_passes_the_draw():
    scores = torch.randn(3, 4, requires_grad=True)

    assert not Hard().train()(scores).requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_straight_through_gives_one_key_and_the_gradient_of_the_softmax(training):
    torch.manual_seed(0)
    own = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    soft = own.detach().clone().requires_grad_()
    mask = torch.tensor([True, True, False, True, True])
    pull = torch.randn_like(own)

    weights = Hard(straight_through=True).train(training)(own, mask)
    (weights * pull).sum().backward()
    expected = soft.masked_fill(~mask, -math.inf).softmax(dim=-1)
    (expected * pull).sum().backward()

    assert set(weights.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(own.grad, soft.grad, rtol=0, atol=1e-12)


def test_with_nothing_open_nothing_is_drawn():
    scores = torch.randn(2, 3, requires_grad=True)

    weights, samples = Hard().train()(scores, torch.tensor([[False], [True]]), return_samples=True)
    (samples.logprob + samples.entropy).sum().backward()

    assert weights[0].tolist() == [0, 0, 0]
    assert samples.logprob[0] == samples.entropy[0] == 0
    assert scores.grad.isfinite().all()
    assert torch.count_nonzero(scores.grad[0]) == 0


def test_it_draws_unless_gradients_pass():
    assert Hard().is_stochastic
    assert not Hard(straight_through=True).is_stochastic


def test_it_has_no_weights():
    assert list(Hard().state_dict()) == []
