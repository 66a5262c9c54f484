import math

import numpy as np
import pytest
import torch
from transformers import Speech2TextFeatureExtractor

from zoo import ZooError
from zoo_ctc.fbank import Fbank

PLAIN = {"subtract_means": False, "divide_deviations": False}


def test_known_values():
    options = {"rate": 8, "window": 4, "hop": 2, "fft": 4, "mels": 1, "low": 0.0, **PLAIN}
    embedding = Fbank(**options, preemphasis=0.5).double()
    # Each frame [1, 0, -1, 0] has the mean 0; with the frame before it, times 0.5, subtracted:
    # [0.5, -0.5, -1, 0.5]. The window [0, 3/4, 3/4, 0] ** 0.85 leaves the two in the middle.
    audio = torch.tensor([[1.0, 0, -1, 0, 1, 0]]).double()
    w = 0.75**0.85 * 2**15
    first, second = -0.5 * w, -1.0 * w
    power = [(first + second) ** 2, first**2 + second**2, (first - second) ** 2]
    (band,) = embedding._filters(audio).T
    expected = math.log(sum(p * m for p, m in zip(power, band.tolist(), strict=True)))
    assert embedding(audio)[0, 0].item() == pytest.approx(expected)
    assert embedding(torch.zeros(1, 4))[0, 0].item() == pytest.approx(math.log(2**-23))


def speech_like(length, seed):
    """A loud tone, weak noise, and silence at the end."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(length) / 16000
    audio = 0.5 * np.sin(2 * np.pi * 440 * seconds) * np.sin(2 * np.pi * 3 * seconds)
    audio += 1e-4 * rng.normal(size=length)
    audio[-1000:] = 0.0
    return audio.astype(np.float32)


@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("deviations", [True, False])
def test_features_equal_those_of_transformers(means, deviations):
    audio = [speech_like(16000, 0), speech_like(9000, 1)]
    extractor = Speech2TextFeatureExtractor(normalize_means=means, normalize_vars=deviations)
    expected = extractor(audio, sampling_rate=16000, padding=True, return_tensors="pt")
    embedding = Fbank(subtract_means=means, divide_deviations=deviations)
    padded = torch.full((2, 16000), math.nan)
    for row, samples in zip(padded, audio, strict=True):
        row[: len(samples)] = torch.from_numpy(samples)
    mask = embedding.mask(padded)
    assert torch.equal(mask, expected.attention_mask.bool())
    found, wanted = embedding(padded), expected.input_features
    torch.testing.assert_close(found[mask], wanted[mask], atol=2e-5, rtol=1e-5)
    assert not found[~mask].any()


def test_an_item_does_not_depend_on_its_padding():
    embedding = Fbank(rate=1000, window=32, hop=16, fft=32, mels=4)
    audio = embedding.example(1, 5, torch.Generator().manual_seed(0))
    padded = torch.cat([audio, torch.full((1, 40), math.nan)], dim=1)
    torch.testing.assert_close(embedding(padded)[:, :5], embedding(audio))
    assert not embedding.state_dict()


def test_invalid_values():
    with pytest.raises(ZooError, match=r"fft \(256\) must be at least window \(400\)"):
        Fbank(fft=256)
    with pytest.raises(ZooError, match=r"low \(9000\) must be less than half the rate \(8000\)"):
        Fbank(low=9000)
    with pytest.raises(ZooError, match="waveforms have 100 samples, but one window has 400"):
        Fbank()(torch.zeros(1, 100))
    with pytest.raises(ZooError, match="expects floating-point samples"):
        Fbank()(torch.zeros(1, 500, dtype=torch.long))
