import math

import torch

from zoo_alignment.exponential import Exponential


def test_weights_are_the_exponential_of_the_scores():
    scores = torch.tensor([[0.0, math.log(3), -math.inf, 5.0]]).double()
    mask = torch.tensor([[True, True, True, False]])
    expected = torch.tensor([[1.0, 3.0, 0.0, 0.0]]).double()
    torch.testing.assert_close(Exponential()(scores, mask), expected)


def test_gradient_of_a_masked_infinite_score_is_zero():
    scores = torch.tensor([[1.0, math.inf]], requires_grad=True)
    Exponential()(scores, torch.tensor([[True, False]])).sum().backward()
    torch.testing.assert_close(scores.grad, torch.tensor([[math.e, 0.0]]))


def test_has_no_parameters():
    assert not Exponential().state_dict()
