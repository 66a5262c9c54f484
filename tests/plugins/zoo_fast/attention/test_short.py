"""Attention over short sequences in one kernel, against the weights computed in float64; relative
errors below 1e-5 in float32 and 2 % in half precision. Triton's interpreter has no bfloat16 dot."""

import pytest
import torch

from zoo.plugin import Mask
from zoo_fast.attention import short
from zoo_fast.attention.short import why_not_short

ON_GPU = torch.cuda.is_available()
HALF = torch.bfloat16 if ON_GPU else torch.float16


@pytest.fixture(autouse=True)
def attend(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    from zoo_fast.attention.kernels.short_triton import attend_short

    with torch.device("cuda" if ON_GPU else "cpu"):
        yield attend_short


def make(B=2, H=2, T=5, S=7, D=6, dtype=torch.float32):
    torch.manual_seed(0)
    shapes = ((B, T, H, D), (B, S, H, D), (B, S, H, D))
    return [torch.randn(shape).to(dtype).transpose(1, 2).requires_grad_() for shape in shapes]


def reference(query, keys, values, valid, causal, factors=1.0):
    scores = 0.3 * query @ keys.mT
    T, S = scores.shape[-2:]
    allowed = torch.ones(T, S, dtype=torch.bool).tril() if causal else torch.ones(T, S).bool()
    allowed = allowed if valid is None else allowed & valid[:, None, None]
    weights = scores.masked_fill(~allowed, float("-inf")).softmax(-1).nan_to_num()
    return (weights * factors) @ values


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm().clamp(min=1e-9)).item()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (HALF, 2e-2)])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_values_and_gradients(attend, dtype, tolerance, causal, padded):
    leaves = make(dtype=dtype, S=5 if causal else 7)
    S = leaves[1].shape[2]
    valid = torch.arange(S) < torch.tensor([[3], [0]]) if padded else None  # item 1 has no key
    out = attend(*leaves, valid, causal=causal, scale=0.3, dropout_p=0.0)
    double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = reference(*double, valid, causal)
    assert relative_error(out, expected) < tolerance
    upper = torch.randn(out.shape).to(dtype)
    found = torch.autograd.grad(out, leaves, upper)
    for gradient, wanted in zip(
        found, torch.autograd.grad(expected, double, upper.double()), strict=True
    ):
        assert gradient.dtype == dtype
        assert relative_error(gradient, wanted) < tolerance


def test_one_query_and_one_key(attend):
    leaves = make(B=1, H=1, T=1, S=1, D=1)
    out = attend(*leaves, None, causal=True, scale=1.0, dropout_p=0.0)
    torch.testing.assert_close(out, leaves[2])


def test_dropout(attend):
    query, keys, _ = make(B=1, H=2, T=4, S=16, D=16)
    values = torch.eye(16).expand(1, 2, 16, 16).clone().requires_grad_()  # out is the weights
    torch.manual_seed(1)
    out = attend(query, keys, values, None, causal=False, scale=0.3, dropout_p=0.25)
    torch.manual_seed(1)
    again = attend(query, keys, values, None, causal=False, scale=0.3, dropout_p=0.25)
    assert torch.equal(out, again)
    factors = (out > 0).double() / 0.75
    assert 0.5 < (out > 0).float().mean() < 0.95
    double = [leaf.detach().double().requires_grad_() for leaf in (query, keys, values)]
    expected = reference(*double, None, False, factors)
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-5)
    upper = torch.randn(out.shape)
    found = torch.autograd.grad(out, (query, keys, values), upper)
    wanted = torch.autograd.grad(expected, double, upper.double())
    torch.testing.assert_close([g.double() for g in found], list(wanted), rtol=1e-4, atol=1e-5)


def test_conditions(monkeypatch):
    def reason(mask=None, **sizes):
        return why_not_short(*make(dtype=HALF, **sizes), mask or Mask())

    assert reason() is None
    assert reason(Mask(causal=True)) is None
    assert reason(Mask(causal=True, offset=3)) == "the causal mask has an offset"
    for mask in (Mask(bias=torch.zeros(2, 5, 7)), Mask(window=2)):
        assert reason(mask) == "the mask has a bias, pairs or a window"
    assert reason(T=129).startswith("a sequence is longer than 128")
    assert reason(S=0) == "queries or keys are empty"
    assert why_not_short(*make(), Mask()) == "the dtype is torch.float32"
    query, keys, values = make(dtype=HALF)
    grouped = why_not_short(query, keys[:, :1], values[:, :1], Mask())
    assert grouped == "heads or widths of queries, keys and values differ"
    with torch.no_grad():
        assert reason() == "no gradient is needed"
    monkeypatch.setenv("ZOO_TRITON", "off")
    assert reason() == "ZOO_TRITON is 'off'"
    assert short.MAX_LENGTH == 128


@pytest.mark.parametrize("joined", [(0, 1, 2), (1, 2)])
def test_gradients_of_one_product_are_beside_each_other(attend, joined):
    parts = [part.detach() for part in make(T=5, S=5)]
    packed = torch.stack([parts[index].transpose(1, 2) for index in joined], dim=2)
    packed.requires_grad_()
    for index, view in zip(joined, packed.unbind(dim=2), strict=True):
        parts[index] = view.transpose(1, 2)
    out = attend(*parts, None, causal=False, scale=0.3, dropout_p=0.0)
    (found,) = torch.autograd.grad(out.square().sum(), packed)
    expected = reference(*parts, None, False)
    torch.testing.assert_close(found, torch.autograd.grad(expected.square().sum(), packed)[0])
