"""Dropout, residual sum and LayerNorm or RMSNorm in one kernel, against the modules; relative
errors below 1e-5 in float32 and 2 % in bfloat16."""

import pytest
import torch
from torch import nn

from zoo_fast.transformer.residual import (
    draw_seeds,
    residual_before_norm,
    residual_norm,
    why_not_residual_norm,
)
from zoo_transformer.norm import RMSNorm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    with torch.device(DEVICE):
        yield


def make(D=12, dtype=torch.float32, shape=(2, 3), p=0.0):
    torch.manual_seed(0)
    norm = nn.LayerNorm(D).to(dtype)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, y = (torch.randn(*shape, D).to(dtype).requires_grad_() for _ in range(2))
    return x, y, nn.Dropout(p), norm


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(("D", "shape"), [(12, (2, 3)), (1, (1, 1)), (8, (5, 1))])
def test_values_and_gradients(D, shape, dtype, tolerance, monkeypatch):
    monkeypatch.setattr("zoo_fast.transformer.kernels.residual_norm._PROGRAMS", 2)
    x, y, dropout, norm = make(D, dtype, shape)
    assert why_not_residual_norm(x, norm) is None
    y_bias = torch.randn(D).to(dtype).requires_grad_()
    leaves = [x, y, norm.weight, norm.bias, y_bias]
    strided = y.transpose(0, 1).contiguous().transpose(0, 1)
    first, second = residual_norm(x, strided, dropout, norm, y_bias)
    assert torch.equal(first, second)
    out = 0.25 * first + 0.75 * second
    upper = torch.randn(out.shape)
    found = torch.autograd.grad(out, leaves, upper.to(dtype))
    double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = nn.functional.layer_norm(double[0] + double[1] + double[4], (D,), *double[2:4])
    references = torch.autograd.grad(expected, double, upper.to(dtype).double())
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=4 * tolerance)
    if D == 1:
        assert not found[0].any()
        return
    for gradient, reference, leaf in zip(found, references, leaves, strict=True):
        assert gradient.dtype == leaf.dtype
        assert relative_error(gradient, reference) < tolerance


def test_dropout_keeps_the_fraction_and_has_the_gradient_of_what_it_keeps():
    x, y, dropout, norm = make(1024, shape=(1, 2), p=0.25)
    with torch.no_grad():
        x.zero_()
        y.fill_(1.0)
    out, _ = residual_norm(x, y, dropout, norm)
    kept = (out - norm.bias) / norm.weight > 0
    assert abs(kept.float().mean().item() - 0.75) < 0.05
    grad_x, grad_y = torch.autograd.grad(out, (x, y), torch.randn_like(out))
    torch.testing.assert_close(grad_y, grad_x * kept / 0.75)
    again, _ = residual_norm(x, y, dropout, norm)
    assert not torch.equal(out, again)
    torch.manual_seed(1)
    first, _ = residual_norm(x, y, dropout, norm)
    torch.manual_seed(1)
    assert torch.equal(first, residual_norm(x, y, dropout, norm)[0])
    assert torch.allclose(residual_norm(x, y, dropout.eval(), norm)[0], norm(x + y), atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("rms", [False, True])
def test_sum_and_its_norm(rms, dtype, tolerance, monkeypatch):
    monkeypatch.setattr("zoo_fast.transformer.kernels.residual_norm._PROGRAMS", 2)
    x, y, dropout, norm = make(12, dtype, (5, 3))
    if rms:
        norm = RMSNorm(12, 1e-5).to(dtype)
        torch.nn.init.normal_(norm.weight)
    y_bias = torch.randn(12).to(dtype).requires_grad_()
    leaves = [x, y, y_bias, *norm.parameters()]
    normed, summed = residual_before_norm(x, y, dropout, norm, y_bias)
    double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    z = double[0] + double[1] + double[2]
    if rms:
        expected = nn.functional.rms_norm(z, (12,), double[3], 1e-5)
    else:
        expected = nn.functional.layer_norm(z, (12,), *double[3:])
    torch.testing.assert_close(summed.double(), z, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(normed.double(), expected, rtol=tolerance, atol=4 * tolerance)
    uppers = [torch.randn(z.shape).to(dtype) for _ in range(2)]
    found = torch.autograd.grad((normed, summed), leaves, uppers)
    references = torch.autograd.grad((expected, z), double, [upper.double() for upper in uppers])
    for gradient, reference, leaf in zip(found, references, leaves, strict=True):
        assert gradient.dtype == leaf.dtype
        assert relative_error(gradient, reference) < tolerance


def test_second_derivatives_of_rms_norm():
    x, y, dropout, _ = make(4, shape=(1, 2))
    norm = RMSNorm(4, 1e-5)
    leaves, results = [x, y, norm.weight], []
    for value in (residual_before_norm(x, y, dropout, norm)[0], norm(x + y)):
        upper = torch.linspace(-1, 1, 8).view_as(value)
        first = torch.autograd.grad(value, leaves, upper, create_graph=True)
        penalty = sum(gradient.square().sum() for gradient in first)
        results.append(torch.autograd.grad(penalty, leaves))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


def test_autocast_gives_the_norm_in_its_dtype_and_the_sum_in_float32():
    x, y, dropout, norm = make()
    with torch.autocast(DEVICE, torch.bfloat16):
        normed, summed = residual_before_norm(x, y.to(torch.bfloat16), dropout, norm)
    assert (normed.dtype, summed.dtype) == (torch.bfloat16, torch.float32)


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_second_derivatives(p):
    x, y, dropout, norm = make(4, shape=(1, 2), p=p)
    leaves = [x, y, norm.weight]
    torch.manual_seed(2)
    out, _ = residual_norm(x, y, dropout, norm)
    factor = torch.ones_like(y)
    if p:
        torch.manual_seed(2)
        (factor,) = torch.autograd.grad(_sum(x, y, dropout, norm), y, torch.ones_like(y))
    expected = norm(x + y * factor)
    results = []
    for value in (out, expected):
        upper = torch.linspace(-1, 1, 8).view_as(value)
        first = torch.autograd.grad(value, leaves, upper, create_graph=True)
        penalty = sum(gradient.square().sum() for gradient in first)
        results.append(torch.autograd.grad(penalty, leaves))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


def _sum(x, y, dropout, norm):
    """Return the sum before the norm, the second output of the kernel."""
    from zoo_fast.transformer.kernels.residual_norm import _ResidualNorm

    (seed,) = draw_seeds(1, x)
    flat = (t.reshape(-1, t.shape[-1]) for t in (x, y))
    parts = (None, norm.weight, norm.bias, seed, dropout.p, norm.eps, x.dtype)
    return _ResidualNorm.apply(*flat, *parts, None)[2].view_as(x)


def test_autocast_returns_float32_as_layer_norm_does():
    x, y, dropout, norm = make()
    with torch.autocast(DEVICE, torch.bfloat16):
        _, out = residual_norm(x, y.to(torch.bfloat16), dropout, norm)
    assert out.dtype == torch.float32
    found = torch.autograd.grad(out.sum(), [y, norm.weight])
    assert {gradient.dtype for gradient in found} == {torch.float32}
