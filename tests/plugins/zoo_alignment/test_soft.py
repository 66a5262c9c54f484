import math

import torch
import torch.nn.functional as F

from zoo_alignment.soft import Soft


def test_weights_have_known_values():
    scores = torch.tensor([[0.0, math.log(2), math.log(5)]], dtype=torch.float64)

    # exp: 1, 2, 5; their sum is 8.
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8]], dtype=torch.float64)
    torch.testing.assert_close(Soft()(scores), expected, rtol=0, atol=1e-12)


def test_masked_weights_have_known_values():
    scores = torch.tensor([[0.0, math.log(2), math.log(5)]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    # exp: 1, 2; their sum is 3.
    expected = torch.tensor([[1 / 3, 2 / 3, 0]], dtype=torch.float64)
    torch.testing.assert_close(Soft()(scores, mask), expected, rtol=0, atol=1e-12)


def test_weights_are_the_softmax_over_valid_scores():
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 4, 6, dtype=torch.float64) * 5
    mask = torch.rand(2, 3, 4, 6) > 0.4
    mask[..., 0] = True

    weights = Soft()(scores, mask)

    for row, valid, weight in zip(
        scores.view(-1, 6), mask.view(-1, 6), weights.view(-1, 6), strict=True
    ):
        torch.testing.assert_close(weight[valid], F.softmax(row[valid], dim=-1), rtol=0, atol=1e-12)
        assert torch.count_nonzero(weight[~valid]) == 0


def test_weights_without_a_mask_are_the_softmax():
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 5)

    torch.testing.assert_close(Soft()(scores), F.softmax(scores, dim=-1), rtol=0, atol=1e-7)


def test_fully_masked_rows_are_zero_without_gradient():
    scores = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    mask = torch.tensor([[False, False], [True, True]])

    weights = Soft()(scores, mask)
    weights[:, 0].sum().backward()

    # The second row is sigmoid(3 - 5), with its derivative.
    first = 1 / (1 + math.exp(2))
    slope = first * (1 - first)
    torch.testing.assert_close(
        weights, torch.tensor([[0, 0], [first, 1 - first]]), rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        scores.grad, torch.tensor([[0, 0], [slope, -slope]]), rtol=0, atol=1e-6
    )


def test_very_low_valid_scores_get_all_the_weight():
    scores = torch.tensor([-1e30, -1e30, 0.0])
    mask = torch.tensor([True, True, False])

    assert Soft()(scores, mask).tolist() == [0.5, 0.5, 0]


def test_state_dict_is_empty():
    assert list(Soft().state_dict()) == []
