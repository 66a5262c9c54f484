"""Additive scores of the Triton kernel and of chunks, compared with the formula in float64."""

import pytest
import torch

from zoo import accelerate
from zoo.interfaces import Mask
from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_fast.attention import additive_scores as module
from zoo_fast.attention.additive_scores import additive_scores

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(params=["triton", "chunks"])
def path(request, monkeypatch):
    if request.param == "triton":
        pytest.importorskip("triton")
        monkeypatch.setenv("ZOO_TRITON", "interpret")
    else:
        monkeypatch.setenv("ZOO_TRITON", "off")
        monkeypatch.setattr(module, "SMALL", 1)
        monkeypatch.setattr(module, "CHUNK", 1)  # the smallest chunks
        monkeypatch.setattr(module, "CHUNK_OF_KEYS", 14)
    return request.param


def formula(a, b, v):
    return (a[..., :, None, :] + b[..., None, :, :]).tanh() @ v


def make_inputs(leading, T, S, D, dtype=torch.float32, scale=1.0):
    generator = torch.Generator().manual_seed(T + S + D)
    shapes = ((*leading, T, D), (*leading, S, D), (D,))
    return [
        (factor * torch.randn(shape, generator=generator)).to(DEVICE, dtype)
        for shape, factor in zip(shapes, (scale, scale, 1.0), strict=True)
    ]


def assert_matches_formula(inputs, tolerance):
    """Compare scores and gradients by their relative error."""
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    scores, expected = additive_scores(*inputs), formula(*exact)
    assert scores.dtype == inputs[0].dtype
    torch.manual_seed(0)
    weights = torch.randn(scores.shape, device=DEVICE).to(scores.dtype)
    results = scores, *torch.autograd.grad((scores * weights).sum(), inputs)
    exact_gradients = torch.autograd.grad((expected * weights.double()).sum(), exact)
    for result, correct in zip(results, (expected, *exact_gradients), strict=True):
        assert (result.double() - correct).norm() <= tolerance * correct.norm()


SIZES = {
    "size-1": ((), 1, 1, 1),
    "odd": ((2,), 3, 5, 7),
    "several-tiles": ((1, 2), 17, 18, 33),
    "one-query": ((2,), 1, 66, 9),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_scores_and_gradients_match_the_formula(path, size, dtype):
    tolerance = 1e-5 if dtype == torch.float32 else 2**-6
    assert_matches_formula(make_inputs(*size, dtype=dtype), tolerance)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_large_values_of_opposite_sign_do_not_overflow(path):
    a, b, v = make_inputs((2,), 3, 4, 5)
    assert_matches_formula((a + 100, b - 100, v), 1e-4)
    assert_matches_formula((a + 19, b - 100, v), 1e-4)
    assert_matches_formula((a, b, v), 1e-5)


def test_tensors_that_are_not_contiguous_or_expanded(path):
    a, b, v = make_inputs((2,), 4, 5, 6)
    strided = a.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    assert_matches_formula((strided, b[:1].expand(2, -1, -1), v), 1e-5)


def test_nan_is_kept(path):
    a, b, v = make_inputs((), 2, 3, 4)
    a[0, 1] = torch.nan
    assert additive_scores(a, b, v).isnan().tolist() == [[True] * 3, [False] * 3]


def test_gradients_of_gradients(path):
    inputs = [tensor.requires_grad_() for tensor in make_inputs((2,), 3, 4, 5)]

    def second(scores):
        first = torch.autograd.grad(scores.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in first), inputs)

    results, expected = second(additive_scores(*inputs)), second(formula(*inputs))
    for result, correct in zip(results, expected, strict=True):
        torch.testing.assert_close(result, correct, rtol=1e-4, atol=1e-4)


def test_empty_inputs(path):
    a, b, v = make_inputs((2,), 0, 3, 4)
    assert additive_scores(a, b, v).shape == (2, 0, 3)
    assert additive_scores(b, a, v).shape == (2, 3, 0)


def test_attention_with_ragged_and_fully_masked_rows_matches_the_reference(path, monkeypatch):
    torch.manual_seed(0)
    attention = accelerate(
        Attention(
            query_dim=6,
            key_dim=6,
            scorer=Blueprint.of(Additive, hidden=5),
            align=Blueprint.of(Soft),
            heads=2,
        )
    ).to(DEVICE)
    query, states = torch.randn(3, 4, 6, device=DEVICE), torch.randn(3, 5, 6, device=DEVICE)
    lengths = torch.tensor([[5], [2], [0]], device=DEVICE)
    mask = Mask(keys=torch.arange(5, device=DEVICE) < lengths)

    def context_and_gradients():
        context = attention(query, states, mask).context
        return context, *torch.autograd.grad(context.square().sum(), list(attention.parameters()))

    fused = context_and_gradients()
    monkeypatch.setenv("ZOO_TRITON", "off")
    monkeypatch.setattr(module, "CHUNK", 2**20)  # the formula itself
    for result, expected in zip(fused, context_and_gradients(), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
