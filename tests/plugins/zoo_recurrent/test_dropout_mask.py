import pytest
import torch
from torch import nn

from zoo_recurrent.dropout_mask import apply_mask, sample_mask, shared_dropout


def test_all_steps_of_an_item_have_the_same_mask():
    torch.manual_seed(0)
    x = torch.arange(1.0, 2 * 3 * 8 + 1).view(2, 3, 8)

    factors = shared_dropout(nn.Dropout(0.75), x) / x

    torch.testing.assert_close(factors, factors[:, :1].expand_as(x))
    torch.testing.assert_close(factors.unique(), torch.tensor([0.0, 4.0]))
    assert not torch.equal(factors[0], factors[1])


def test_the_mask_is_that_of_dropout():
    torch.manual_seed(0)
    mask = sample_mask(nn.Dropout(0.5), torch.zeros(2, 3))
    torch.manual_seed(0)
    assert torch.equal(mask, nn.Dropout(0.5)(torch.ones(2, 3)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_factors_are_not_rounded_to_the_dtype_of_the_inputs(dtype):
    mask = sample_mask(nn.Dropout(0.4), torch.zeros(50, dtype=dtype))

    assert mask.max().item() == pytest.approx(1 / 0.6, rel=1e-6)
    dropped = apply_mask(torch.full((50,), 3.0, dtype=dtype), mask)
    assert dropped.dtype == dtype
    assert dropped.max().item() == 5.0  # 4.9922 with a factor of 1.6641, 1 / 0.6 in bfloat16


def test_no_effect_in_evaluation_mode():
    x = torch.randn(2, 3, 4)
    assert torch.equal(shared_dropout(nn.Dropout(0.5).eval(), x), x)
