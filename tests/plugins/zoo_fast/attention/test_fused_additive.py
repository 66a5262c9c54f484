"""Attention with additive scores in Triton kernels, compared with the formula in float64."""

from dataclasses import replace

import pytest
import torch
from attention_kit import build

from zoo import accelerate, recording
from zoo.plugin import Mask
from zoo_fast.attention.fused_additive import fused_additive
from zoo_fast.attention.fused_attention import AdditiveAttention

pytest.importorskip("triton")
from zoo_fast.attention.kernels import additive_attention, additive_triton

pytestmark = [
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS, but there was no current"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),  # e^x is inf
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KEYS = torch.arange(7) < torch.tensor([[4], [0]])
GENERATOR = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def interpret(monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    GENERATOR.manual_seed(1)


def randn(*shape, scale=1.0):
    return (scale * torch.randn(shape, generator=GENERATOR)).to(DEVICE)


def formula(a, b, v, values, mask, dropout=1.0):
    b, values = (x.repeat_interleave(a.shape[1] // x.shape[1], dim=1) for x in (b, values))
    v = v if v.ndim == 1 else v[:, None, None]
    scores = ((a[..., :, None, :] + b[..., None, :, :]).tanh() * v).sum(dim=-1)
    scores = scores if mask.bias is None else scores + mask.bias
    dense = mask.dense(a.shape[2], b.shape[2], a.device)
    if dense is None:
        return (scores.softmax(dim=-1) * dropout) @ values
    weights = scores.masked_fill(~dense[:, None], -1e300).softmax(dim=-1)
    return (weights.masked_fill(~dense[:, None], 0.0) * dropout) @ values


def make_inputs(B=2, H=1, T=3, S=7, D=5, Dv=4, *, Hk=None, Hv=None, scale=1.0):
    a, b = randn(B, H, T, D, scale=scale), randn(B, Hk or H, S, D, scale=scale)
    return [a, b, randn(H, D), randn(B, Hv or H, S, Dv)]


def assert_matches_formula(inputs, mask=None, tolerance=1e-5):
    """Compare context and gradients by their relative error."""
    mask = _to_device(mask or Mask())
    if mask.bias is not None:
        inputs = [*inputs, mask.bias]
    inputs = [x.detach().requires_grad_() for x in inputs]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    context = fused_additive(*inputs[:4], replace(mask, bias=_fifth(inputs)))
    expected = formula(*exact[:4], replace(mask, bias=_fifth(exact)))
    assert context.dtype == inputs[3].dtype
    g = randn(*context.shape).to(context.dtype)
    results = context, *torch.autograd.grad(context, inputs, g)
    exact_results = expected, *torch.autograd.grad(expected, exact, g.double())
    for result, correct in zip(results, exact_results, strict=True):
        assert (result.double() - correct).norm() <= tolerance * correct.norm().clamp(min=1e-30)


def _fifth(inputs):
    return inputs[4] if len(inputs) > 4 else None


def _to_device(mask):
    parts = {
        name: value.to(DEVICE)
        for name in ("keys", "pairs", "bias", "offset")
        if isinstance(value := getattr(mask, name), torch.Tensor)
    }
    return replace(mask, **parts)


MASKS = {
    "ragged": Mask(keys=KEYS),
    "causal": Mask(causal=True),
    "causal-offset": Mask(causal=True, offset=2),
    "causal-tensor-offset": Mask(causal=True, offset=torch.tensor(1)),
    "pairs": Mask(pairs=torch.randn(2, 3, 7, generator=GENERATOR) > 0),
    "bias": Mask(keys=KEYS, causal=True, bias=torch.randn(1, 3, 7, generator=GENERATOR)),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks(mask):
    assert_matches_formula(make_inputs(), mask)


@pytest.mark.parametrize("name", ["causal-offset", "bias"])
def test_slices_of_queries(name, monkeypatch):
    monkeypatch.setattr(additive_attention, "CHUNK", 28)  # two queries
    assert_matches_formula(make_inputs(), MASKS[name])


SIZES = {
    "size-1": {"B": 1, "T": 1, "S": 1, "D": 1, "Dv": 1},
    "several-tiles": {"B": 1, "T": 9, "S": 34, "D": 67},
    "shared-keys-and-values": {"B": 1, "H": 4, "Hk": 2, "Hv": 1},
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_sizes(size):
    assert_matches_formula(make_inputs(**size))


@pytest.mark.parametrize("mask", [Mask(), Mask(keys=KEYS), Mask(bias=torch.ones(1, 1, 7))])
def test_one_query(mask):
    assert_matches_formula(make_inputs(T=1), mask)


@pytest.mark.parametrize("T", [1, 2])
@pytest.mark.parametrize(("scale", "shift"), [(12.0, 0.0), (30.0, 0.0), (1.0, 100.0)])
def test_large_values(T, scale, shift):
    a, b, v, values = make_inputs(T=T, scale=scale)
    assert_matches_formula([a + shift, b - shift, v, values], tolerance=1e-4)


@pytest.mark.parametrize("max_queries", [2, 256])
def test_bfloat16(max_queries, monkeypatch):
    monkeypatch.setattr(additive_triton, "MAX_HALF_QUERIES", max_queries)
    inputs = [x.bfloat16() for x in make_inputs()]
    assert_matches_formula(inputs, Mask(keys=KEYS), tolerance=2**-6)
    assert_matches_formula([x.bfloat16() for x in make_inputs(T=1)], tolerance=2**-6)


def test_tensors_that_are_not_contiguous():
    a, b, v, values = make_inputs()
    strided = a.transpose(1, 3).contiguous().transpose(1, 3)
    assert not strided.is_contiguous()
    assert_matches_formula([strided, b[:1].expand(2, -1, -1, -1), v, values])


@pytest.mark.parametrize("chunk", [2**25, 128], ids=["one-chunk", "chunks"])
def test_dropout_is_the_same_in_both_passes(chunk, monkeypatch):
    monkeypatch.setattr(additive_attention, "CHUNK", chunk)
    a, b, v, _ = make_inputs(B=1, T=4, S=64)
    values = torch.eye(64, device=DEVICE)[None, None]  # the context is the weights
    torch.manual_seed(0)
    weights = fused_additive(a, b, v, values, Mask(), dropout_p=0.25)
    dropout = (weights != 0).double() / 0.75
    assert abs(float((weights == 0).double().mean()) - 0.25) < 0.14  # 256 weights: five deviations

    inputs = [x.requires_grad_() for x in (a, b, v, randn(1, 1, 64, 3))]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    torch.manual_seed(0)
    context = fused_additive(*inputs, Mask(), dropout_p=0.25)
    expected = formula(*exact, Mask(), dropout)
    g = randn(*context.shape)
    results = context, *torch.autograd.grad(context, inputs, g)
    exact_results = expected, *torch.autograd.grad(expected, exact, g.double())
    for result, correct in zip(results, exact_results, strict=True):
        torch.testing.assert_close(result.double(), correct, rtol=1e-4, atol=1e-5)


def test_gradients_of_gradients():
    inputs = [x.requires_grad_() for x in make_inputs()]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = _to_device(Mask(keys=KEYS, causal=True))

    def second(context, parts):
        first = torch.autograd.grad(context.square().sum(), parts, create_graph=True)
        return torch.autograd.grad(sum(x.square().sum() for x in first), parts)

    results = second(fused_additive(*inputs, mask), inputs)
    expected = second(formula(*exact, mask), exact)
    for result, correct in zip(results, expected, strict=True):
        assert (result.double() - correct).norm() <= 1e-4 * correct.norm()


@pytest.mark.parametrize("T", [1, 2])
def test_autocast(T):
    inputs = make_inputs(T=T)
    with torch.autocast(DEVICE, torch.bfloat16):
        context = fused_additive(*inputs, Mask())
    assert context.dtype == torch.bfloat16
    torch.testing.assert_close(context.float(), formula(*inputs, Mask()), rtol=2e-2, atol=2e-2)


def test_nan_stays_in_its_query():
    a, b, v, values = make_inputs()
    a[0, 0, 1, 2] = torch.nan
    is_nan = fused_additive(a, b, v, values, Mask()).isnan()
    assert is_nan[0, 0, 1].all()
    assert is_nan.sum() == values.shape[-1]


def test_none_without_kernel(monkeypatch):
    inputs = make_inputs()
    assert fused_additive(*(x.double() for x in inputs), Mask()) is None
    assert fused_additive(inputs[0][:, :, :0], *inputs[1:], Mask()) is None
    monkeypatch.setenv("ZOO_TRITON", "off")
    assert fused_additive(*inputs, Mask()) is None


@pytest.mark.parametrize("scorer", ["additive", "concat"])
def test_heads_with_a_scorer_each(scorer):
    attention = accelerate(build(scorer, heads=2, kv_heads=1).to(DEVICE))
    query, states = randn(2, 3, 6), randn(2, 7, 6)
    mask = Mask(keys=KEYS.to(DEVICE))
    assert AdditiveAttention().why_not(attention, query.device) is None

    def run():
        context = attention(query, states, mask).context
        return context, *torch.autograd.grad(context.square().sum(), list(attention.parameters()))

    fused = run()
    with recording(attention):
        reference = run()
    for result, expected in zip(fused, reference, strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_a_bias_of_each_item_uses_the_reference_path():
    assert fused_additive(*make_inputs(), Mask(bias=randn(2, 1, 3, 7))) is None
