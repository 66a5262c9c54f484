
import pytest
import torch
from entmax import entmax15

from zoo_alignment.entmax import Entmax


def test_weights_of_scores_worked_out_by_hand():
    # Half the scores are 0.8, 0.6 and -0.1: with tau = 0 the squares are 0.64, 0.36 and none.
    scores = torch.tensor(
        [[2 * 0.8, 2 * 0.6, 2 * -0.1], [9.0, 5.0, 7.0], [0.0, 0.0, 0.0]], dtype=torch.float64
    )

    # Differences of 2 or more between the scores leave the best one alone.
    expected = [[0.64, 0.36, 0], [1, 0, 0], [1 / 3] * 3]
    torch.testing.assert_close(
        Entmax()(scores), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 1e4])
def test_values_and_gradients_equal_those_of_the_authors_package(scale):
    torch.manual_seed(0)
    own = (torch.randn(3, 2, 4, 9, dtype=torch.float64) * scale).requires_grad_()
    theirs = own.detach().clone().requires_grad_()
    pull = torch.randn_like(own)

    weights, expected = Entmax()(own), entmax15(theirs, dim=-1)
    (weights * pull).sum().backward()
    (expected * pull).sum().backward()

    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(own.grad, theirs.grad, rtol=0, atol=1e-10)


def test_a_masked_row_equals_the_package_on_the_open_scores_alone():
    torch.manual_seed(0)
    scores = torch.randn(20, 7, dtype=torch.float64)
    mask = torch.rand(20, 7) > 0.4
    mask[:, 2] = True

    weights = Entmax()(scores, mask)

    for row, opened, weight in zip(scores, mask, weights, strict=True):
        expected = entmax15(row[opened], dim=-1)
        torch.testing.assert_close(weight[opened], expected, rtol=0, atol=1e-12)
        assert torch.count_nonzero(weight[~opened]) == 0


def test_gradients_are_those_of_finite_differences():
    torch.manual_seed(0)
    scores = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, False, True, True, True, True])

    assert torch.autograd.gradcheck(lambda x: Entmax()(x, mask), (scores,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rows_still_sum_to_one(dtype):
    torch.manual_seed(0)
    weights = Entmax()(torch.randn(4, 200).to(dtype))

    assert weights.dtype == dtype
    torch.testing.assert_close(weights.float().sum(dim=-1), torch.ones(4), rtol=0, atol=0.03)


def test_it_has_no_weights():
    assert list(Entmax().state_dict()) == []
