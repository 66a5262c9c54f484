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


def test_a_sink_takes_a_part_of_each_row():
    scores = torch.tensor([0.0, 2.0, 5.0], dtype=torch.float64)
    scores = torch.where(scores > 0, scores.log(), 0.0).expand(1, 2, 1, 3)  # exp: 1, 2, 5
    soft = Soft(sink=True, heads=2).double()

    # The sinks are 0, then ln 4: sums are 9 and 12.
    assert list(soft.state_dict()) == ["sink"]
    expected = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    torch.testing.assert_close(soft(scores)[0, 0, 0], expected / 9, rtol=0, atol=1e-12)
    torch.nn.init.constant_(soft.sink, math.log(4))
    torch.testing.assert_close(soft(scores)[0, 1, 0], expected / 12, rtol=0, atol=1e-12)
    masked = soft(scores, torch.tensor([True, False, True]))[0, 1, 0]
    expected = torch.tensor([1.0, 0.0, 5.0], dtype=torch.float64) / 10
    torch.testing.assert_close(masked, expected, rtol=0, atol=1e-12)


def test_a_sink_is_a_further_key_without_a_value():
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    soft = Soft(sink=True, heads=3).double()
    torch.nn.init.normal_(soft.sink)
    mask = torch.rand(2, 1, 4, 5) > 0.3
    sink = soft.sink.reshape(1, 3, 1, 1).expand(2, 3, 4, 1)
    combined = torch.cat([scores.masked_fill(~mask, -torch.inf), sink], dim=-1)
    expected = F.softmax(combined, dim=-1)[..., :-1]
    torch.testing.assert_close(soft(scores, mask), expected, rtol=0, atol=1e-12)
    assert not soft.normalised
    soft(scores, mask).square().sum().backward()
    assert (soft.sink.grad != 0).all()
