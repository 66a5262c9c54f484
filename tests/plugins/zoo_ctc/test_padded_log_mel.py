import numpy as np
import pytest
import torch
from transformers import WhisperFeatureExtractor

from zoo import ZooError
from zoo_ctc.padded_log_mel import PaddedLogMel


def test_known_values():
    embedding = PaddedLogMel(rate=8, window=4, hop=2, mels=1, frames=3)
    silence = torch.zeros(1, 6)
    torch.testing.assert_close(embedding(silence), torch.full((1, 3, 1), (-10 + 4) / 4))
    # The windows [0, 1/2, 1, 1/2] of a constant 1 have the spectrum 2, -1, 0. Frames at 0, 2, 4.
    constant = torch.ones(1, 6)
    (band,) = embedding._mel_filters(constant).T
    power = torch.tensor([4.0, 1.0, 0.0]) @ band
    expected = ((power.log10() + 4) / 4).expand(1, 3, 1)
    torch.testing.assert_close(embedding(constant), expected)


@pytest.mark.parametrize("mels", [80, 128])
@pytest.mark.parametrize("length", [8000, 16000])
def test_features_equal_those_of_transformers(mels, length):
    rng = np.random.default_rng(0)
    seconds = np.arange(length) / 16000
    tone = np.sin(2 * np.pi * 440 * seconds) + 0.02 * rng.normal(size=length)
    audio = np.stack([tone, 0.1 * rng.normal(size=length)]).astype(np.float32)
    extractor = WhisperFeatureExtractor(feature_size=mels, chunk_length=1)
    expected = extractor(list(audio), sampling_rate=16000, return_tensors="pt").input_features
    features = PaddedLogMel(mels=mels, frames=100)(torch.from_numpy(audio))
    torch.testing.assert_close(features, expected.transpose(1, 2), atol=1e-4, rtol=0)


def test_padding_of_a_batch_is_silence_as_the_padding_of_an_item():
    embedding = PaddedLogMel(rate=1000, window=32, hop=16, mels=4, frames=5)
    audio = torch.randn(1, 40, generator=torch.Generator().manual_seed(0))
    padded = torch.cat([audio, torch.zeros(1, 20)], dim=1)
    torch.testing.assert_close(embedding(padded), embedding(audio), rtol=0, atol=0)
    assert embedding.mask(padded).all()
    assert not embedding.state_dict()


def test_audio_that_is_too_long_raises():
    embedding = PaddedLogMel(rate=1000, window=32, hop=16, mels=4, frames=5)
    with pytest.raises(ZooError, match=r"the audio has 0.081 s, but at most 0.08 s"):
        embedding(torch.zeros(1, 81))
    with pytest.raises(ZooError, match="expects floating-point samples"):
        embedding(torch.zeros(1, 8, dtype=torch.long))
    with pytest.raises(ZooError, match=r"window \(400\) must be below"):
        PaddedLogMel(frames=1)
