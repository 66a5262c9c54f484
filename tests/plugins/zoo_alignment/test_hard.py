import math

import pytest
import torch
from torch.distributions import Categorical

from zoo_alignment.hard import Hard


def test_evaluation_selects_the_most_probable_valid_key():
    scores = torch.tensor([[0.0, 3.0, 5.0], [2.0, 1.0, 0.0]])
    mask = torch.tensor([True, True, False])

    assert Hard().eval()(scores, mask).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_samples_have_known_values():
    scores = torch.tensor([[0.0, math.log(3), 7.0]], dtype=torch.float64)
    mask = torch.tensor([True, True, False])

    _, samples = Hard().eval()(scores, mask, return_samples=True)

    # probabilities 1/4 and 3/4
    assert samples.logprob.tolist() == pytest.approx([math.log(3 / 4)])
    expected = -(math.log(1 / 4) / 4 + 3 / 4 * math.log(3 / 4))
    assert samples.entropy.tolist() == pytest.approx([expected])


def test_samples_and_gradients_match_torch_categorical():
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    reference = scores.detach().clone().requires_grad_()

    weights, samples = Hard().train()(scores, return_samples=True)
    expected = Categorical(logits=reference)
    logprob = expected.log_prob(weights.argmax(dim=-1))
    (samples.logprob + samples.entropy.square()).sum().backward()
    (logprob + expected.entropy().square()).sum().backward()

    torch.testing.assert_close(samples.logprob, logprob, rtol=0, atol=1e-12)
    torch.testing.assert_close(samples.entropy, expected.entropy(), rtol=0, atol=1e-12)
    torch.testing.assert_close(scores.grad, reference.grad, rtol=0, atol=1e-12)


def test_samples_are_reproducible():
    scores = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    samples = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        samples.append(Hard().train()(scores))

    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_samples_have_no_gradient():
    scores = torch.randn(3, 4, requires_grad=True)

    assert not Hard().train()(scores).requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_straight_through_is_one_hot_with_the_softmax_gradient(training):
    torch.manual_seed(0)
    scores = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    soft = scores.detach().clone().requires_grad_()
    mask = torch.tensor([True, True, False, True, True])
    coefficients = torch.randn_like(scores)

    weights = Hard(straight_through=True).train(training)(scores, mask)
    (weights * coefficients).sum().backward()
    expected = soft.masked_fill(~mask, -math.inf).softmax(dim=-1)
    (expected * coefficients).sum().backward()

    assert set(weights.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(scores.grad, soft.grad, rtol=0, atol=1e-12)


def test_fully_masked_rows_have_no_samples():
    scores = torch.randn(2, 3, requires_grad=True)

    weights, samples = Hard().train()(scores, torch.tensor([[False], [True]]), return_samples=True)
    (samples.logprob + samples.entropy).sum().backward()

    assert weights[0].tolist() == [0, 0, 0]
    assert samples.logprob[0] == samples.entropy[0] == 0
    assert scores.grad.isfinite().all()
    assert torch.count_nonzero(scores.grad[0]) == 0


def test_expectation_replaces_samples_in_training():
    torch.manual_seed(0)
    scores = torch.randn(4000, 5, dtype=torch.float64, requires_grad=True)
    align = Hard(expectation=0.25).train()

    weights, samples = align(scores, return_samples=True)
    expected = (weights < 1).all(dim=-1)
    coefficients = torch.randn_like(scores)
    (weights * coefficients).sum().backward()
    soft = scores.detach().clone().requires_grad_()
    (soft.softmax(dim=-1) * coefficients)[expected].sum().backward()

    assert expected.double().mean().item() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(weights[expected], scores.softmax(dim=-1)[expected])
    assert set(weights[~expected].unique().tolist()) == {0.0, 1.0}
    assert torch.equal(samples.logprob == 0, expected)
    torch.testing.assert_close(scores.grad, soft.grad)
    assert set(align.eval()(scores).unique().tolist()) == {0.0, 1.0}


def test_is_stochastic_unless_straight_through():
    assert Hard().is_stochastic
    assert not Hard(straight_through=True).is_stochastic


def test_state_dict_is_empty():
    assert list(Hard().state_dict()) == []
