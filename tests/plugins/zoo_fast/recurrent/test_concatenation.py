"""Concatenation whose gradients do not share memory."""

import torch

from zoo_fast.recurrent.concatenation import concatenate


def make_parts():
    torch.manual_seed(0)
    return [torch.randn(2, 3, width, dtype=torch.float64, requires_grad=True) for width in (1, 4)]


def test_gradients_do_not_share_memory():
    parts = make_parts()
    joined = concatenate(*parts)
    torch.testing.assert_close(joined, torch.cat(parts, dim=-1), rtol=0, atol=0)
    grads = torch.autograd.grad(joined, parts, torch.randn_like(joined))
    assert [grad.untyped_storage().nbytes() for grad in grads] == [6 * 8, 24 * 8]


def test_gradients_of_gradients():
    parts = make_parts()
    assert torch.autograd.gradcheck(concatenate, parts)
    assert torch.autograd.gradgradcheck(concatenate, parts)
