"""Weights in one byte: their error, the sums of rows, and data that is not theirs."""

import zlib
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from zoo_inspect.quantised import MAX_ERROR, Quantised, decode, encode


def softmax(*shape, sharpness=1.0, seed=0):
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (scores * sharpness).softmax(-1)


def round_trip(weights):
    quantised = encode(weights)
    decoded = decode(quantised)
    assert decoded.shape == weights.shape
    assert decoded.dtype == torch.float32
    error = (decoded - weights).abs().max().item() if weights.numel() else 0.0
    assert error <= quantised.error + 1e-6 <= MAX_ERROR * quantised.scale + 1e-6
    return decoded


@pytest.mark.parametrize("sharpness", [0.0, 0.1, 1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("columns", [1, 2, 7, 128, 700])
def test_the_error_is_bounded_and_rows_have_their_sums(columns, sharpness):
    weights = softmax(3, 40, columns, sharpness=sharpness)
    decoded = round_trip(weights)
    torch.testing.assert_close(decoded.sum(-1), torch.ones(3, 40), rtol=0, atol=2e-5)


@pytest.mark.parametrize("columns", [128, 512, 10_000])
def test_uniform_weights_are_exact(columns):
    weights = torch.full((1, 2, columns), 1 / columns)
    torch.testing.assert_close(round_trip(weights), weights, rtol=1e-3, atol=0)


def test_flat_rows_of_long_inputs_keep_their_contrast():
    weights = softmax(1, 20, 512, sharpness=0.5)
    assert weights.max() < 0.02
    decoded = round_trip(weights)
    correlation = torch.corrcoef(torch.stack([weights.flatten(), decoded.flatten()]))[0, 1]
    assert correlation > 0.9


def test_small_weights_beside_a_large_one_have_their_mean():
    weights = torch.full((1, 1, 512), 0.5 / 511)
    weights[..., 7] = 0.5
    small = round_trip(weights)[..., 8:]
    torch.testing.assert_close(small, weights[..., 8:], rtol=1e-3, atol=0)


def test_masked_positions_stay_zero():
    weights = softmax(2, 30, 30).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    decoded = round_trip(weights)
    assert (decoded[weights == 0] == 0).all()


def test_known_codes():
    # 0.5 and 0.25 are 138.9 and 69.4 quanta of 0.0036; the rest of the row's sum is in the others.
    weights = torch.tensor([[0.5, 0.25, 0.249, 0.001, 0.0, 0.0]])
    codes = zlib.decompress(encode(weights).data)[:6]
    assert list(codes) == [140, 70, 70, 1, 0, 0]
    assert decode(encode(weights))[0, 3].item() == pytest.approx(0.0014, abs=0.0005)


@pytest.mark.parametrize(
    "weights",
    [
        torch.tensor([[0.0, 3.0, 1000.0]]),
        torch.tensor([[-1.0, 0.5, 1.0]]),
        torch.zeros(2, 3, 4),
        torch.ones(1, 1, 1),
        torch.zeros(2, 0, 4),
        torch.zeros(2, 3, 0),
    ],
    ids=["unnormalised", "negative", "zero", "one", "no rows", "no columns"],
)
def test_other_weights(weights):
    round_trip(weights)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(st.floats(0, 1, width=32), min_size=9, max_size=9), min_size=1, max_size=6)
)
def test_the_bound_holds_for_any_weights(rows):
    weights = torch.tensor(rows)
    decoded = round_trip(weights)
    torch.testing.assert_close(decoded.sum(-1), weights.sum(-1), rtol=0, atol=1e-4)


def wrong_data():
    good = encode(softmax(2, 3, 4))
    yield "not a zlib stream", replace(good, data=b"weights")
    yield "at most", replace(good, data=good.data[:-5])
    yield "at most", replace(good, data=zlib.compress(b"0" * 10_000_000))
    yield "not weights of shape", replace(good, shape=(2, 3, 5))
    yield "do not fit", Quantised((1, 1), 1.0, 0.0, 0.0, zlib.compress(b"\xff" + bytes(5)))


@pytest.mark.parametrize(("message", "quantised"), [*wrong_data()])
def test_wrong_data_is_rejected(message, quantised):
    with pytest.raises(ValueError, match=message):
        decode(quantised)
