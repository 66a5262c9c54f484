"""Log-mel features compared with loops in numpy and scipy."""

import math

import numpy as np
import pytest
import scipy.fft
import torch

from zoo import ZooError
from zoo_ctc.log_mel import LogMel


def slaney_mel(hz):
    return 3 * hz / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def slaney_hertz(mel):
    return 200 * mel / 3 if mel < 15 else 1000 * math.exp((mel - 15) * math.log(6.4) / 27)


def htk_mel(hz):
    return 1127.01048 * math.log(1 + hz / 700)  # the natural-logarithm form of the HTK book


def htk_hertz(mel):
    return 700 * (math.exp(mel / 1127.01048) - 1)


def reference_log_mel(wave, *, rate, window, hop, fft, mels, low, high, scale, area_norm=False):
    """Compute the features [S, mels] of one waveform by the formula of the docstring."""
    from scipy.signal import get_window  # takes a second

    to_mel, to_hertz = (slaney_mel, slaney_hertz) if scale == "slaney" else (htk_mel, htk_hertz)
    edges = [to_hertz(m) for m in np.linspace(to_mel(low), to_mel(high), mels + 2)]
    hann = get_window("hann", window, fftbins=True)
    rows = []
    for start in range(0, len(wave) - window + 1, hop):
        power = np.abs(scipy.fft.rfft(wave[start : start + window] * hann, fft)) ** 2
        row = []
        for left, centre, right in zip(edges, edges[1:], edges[2:], strict=False):
            total = 0.0
            for k, energy in enumerate(power):
                hz = k * rate / fft
                if left < hz <= centre:
                    total += energy * (hz - left) / (centre - left)
                elif centre < hz < right:
                    total += energy * (right - hz) / (right - centre)
            row.append(math.log(max(total * (2 / (right - left) if area_norm else 1), 1e-10)))
        rows.append(row)
    return np.array(rows)


SETTINGS = [
    {"rate": 16000, "window": 400, "hop": 160, "fft": 512, "mels": 40, "low": 20.0, "high": 7600.0},
    {"rate": 8000, "window": 200, "hop": 80, "fft": 200, "mels": 12, "low": 0.0, "high": 4000.0},
]


@pytest.mark.parametrize("area_norm", [False, True])
@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize("setting", SETTINGS, ids=["16k", "8k"])
def test_matches_the_reference(setting, scale, area_norm):
    rng = np.random.default_rng(0)
    wave = rng.normal(size=2 * setting["window"] + 3 * setting["hop"] + 7)
    expected = reference_log_mel(wave, **setting, scale=scale, area_norm=area_norm)
    embedding = LogMel(**setting, scale=scale, area_norm=area_norm).double()
    actual = embedding(torch.tensor(wave)[None])[0].numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-4 if scale == "htk" else 1e-9)
    single = LogMel(**setting, scale=scale, area_norm=area_norm)(torch.tensor(wave)[None].float())[
        0
    ]
    np.testing.assert_allclose(single.numpy(), expected, atol=1e-3)


def test_a_tone_has_its_maximum_in_its_band():
    # On the HTK scale, the centres of nine bands up to 4000 Hz are 214.6 mels apart.
    embedding = LogMel(rate=8000, window=256, hop=128, mels=9, scale="htk")
    for band in range(9):
        hertz = htk_hertz((band + 1) * htk_mel(4000) / 10)
        wave = torch.sin(2 * math.pi * hertz * torch.arange(1024) / 8000)[None]
        assert (embedding(wave).argmax(dim=-1) == band).all()


def test_framing_and_padding():
    embedding = LogMel(rate=1000, window=50, hop=20, mels=4)
    torch.manual_seed(0)
    wave = torch.randn(4, 130)
    wave[1, 90:] = 0.0  # three windows fit into 90 samples
    wave[2, 89:] = 0.0
    wave[3, 40:] = 0.0  # shorter than a window
    mask = embedding.mask(wave)
    assert mask.tolist() == [[n < count for n in range(5)] for count in (5, 3, 2, 0)]
    vectors = embedding(wave)
    assert vectors.shape == (4, 5, 4)
    assert (vectors[~mask] == 0).all()
    torch.testing.assert_close(vectors[1, :3], embedding(wave[1:2, :90])[0])
    assert embedding(wave[:, :69]).shape == (4, 1, 4)


def test_zeros_inside_a_waveform_are_not_padding():
    embedding = LogMel(rate=1000, window=50, hop=50, mels=4)
    wave = torch.zeros(1, 150)
    wave[0, 149] = 1.0
    assert embedding.mask(wave).all()
    assert embedding(wave)[0, 0].tolist() == [pytest.approx(math.log(1e-10))] * 4


def test_normalised_bands_have_mean_0_and_variance_1_over_valid_frames():
    torch.manual_seed(0)
    wave = torch.randn(2, 1000)
    wave[1, 600:] = 0.0
    embedding = LogMel(rate=1000, window=50, hop=10, mels=4, normalise=True)
    vectors, mask = embedding(wave), embedding.mask(wave)
    for item in range(2):
        valid = vectors[item][mask[item]]
        torch.testing.assert_close(valid.mean(dim=0), torch.zeros(4), rtol=0, atol=1e-4)
        torch.testing.assert_close(valid.var(dim=0, correction=0), torch.ones(4), rtol=0, atol=1e-3)
    alone = embedding(wave[1:, :600])
    torch.testing.assert_close(vectors[1, : alone.shape[1]], alone[0], rtol=1e-4, atol=1e-4)


def test_half_precision_is_computed_in_float32_and_returned_in_the_model_dtype():
    torch.manual_seed(0)
    wave = torch.randn(1, 1000).bfloat16()
    embedding = LogMel(rate=1000, window=50, hop=20, mels=4)
    expected = embedding(wave.float())
    assert embedding(wave).dtype is torch.float32  # the dtype of the model
    torch.testing.assert_close(embedding(wave), expected)
    actual = embedding.bfloat16()(wave)
    assert torch.equal(actual, expected.bfloat16())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fft": 300}, r"fft \(300\).*window \(400\)"),
        ({"low": 4000.0, "high": 3000.0}, r"low \(4000\).*high \(3000\)"),
        ({"high": 9000.0}, r"high \(9000\).*\(8000\)"),
        ({"mels": 200}, r"band \d+ of 200.*201"),
    ],
)
def test_invalid_parameters_raise(params, message):
    with pytest.raises(ZooError, match=message):
        LogMel(**params)


def test_inputs_that_are_not_waveforms_raise():
    embedding = LogMel(rate=1000, window=50, hop=20, mels=4)
    with pytest.raises(ZooError, match=r"49 samples.*50"):
        embedding(torch.ones(1, 49))
    with pytest.raises(ZooError, match=r"'log-mel'.*torch\.int64 \[1, 60\]"):
        embedding(torch.ones(1, 60, dtype=torch.long))
    with pytest.raises(ZooError, match=r"'log-mel'.*\[B, L\].*\[60\]"):
        embedding(torch.ones(60))


def test_autocast_does_not_change_the_features():
    embedding = LogMel(rate=8000, window=200, hop=80, mels=8, normalise=True)
    waves = torch.randn(2, 1000)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = embedding(waves)

    assert features.dtype is torch.float32
    assert torch.equal(features, embedding(waves))
