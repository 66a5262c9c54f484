import numpy as np
import pytest
import soundfile
from scipy import signal

from zoo import DataError, ZooError
from zoo.plugin import Audio as Waveform, TensorSchema
from zoo_preprocessing.audio import Audio
from zoo_preprocessing.resampling import resample

SCHEMA = TensorSchema(("B", "L"), "float")
SAMPLES = np.random.default_rng(0).uniform(-1, 1, 400).astype(np.float32)


def audio(**params):
    return Audio(**{"rate": 8000, "schema": SCHEMA, **params})


def test_known_value():
    value = Waveform(np.array([0.5, -0.5, 0.25], np.float32), 8000)
    assert audio().encode(value).tolist() == [0.5, -0.5, 0.25]
    assert audio().encode(tuple(value)).dtype == np.float32
    normalised = audio(normalise=True).encode(Waveform(SAMPLES, 8000))
    expected = (SAMPLES - SAMPLES.mean()) / np.sqrt(SAMPLES.var() + 1e-7)
    np.testing.assert_allclose(normalised, expected, atol=1e-5)


def test_normalised_audio_is_that_of_wav2vec2():
    transformers = pytest.importorskip("transformers")
    extractor = transformers.Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=True)
    expected = extractor(SAMPLES, sampling_rate=8000).input_values[0]
    found = audio(normalise=True).encode(Waveform(SAMPLES, 8000))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("rate", "new_rate"), [(16000, 8000), (8000, 16000), (44100, 16000)])
def test_resampling_is_that_of_scipy(rate, new_rate):
    found = resample(SAMPLES.astype(np.float64), rate, new_rate)
    expected = signal.resample_poly(SAMPLES.astype(np.float64), *_factors(rate, new_rate))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def _factors(rate, new_rate):
    common = np.gcd(rate, new_rate)
    return new_rate // common, rate // common


def test_a_sine_keeps_its_frequency():
    time = np.arange(4410) / 44100
    found = resample(np.sin(2 * np.pi * 440 * time), 44100, 16000)
    expected = np.sin(2 * np.pi * 440 * np.arange(1600) / 16000)
    assert len(found) == 1600
    np.testing.assert_allclose(found[100:-100], expected[100:-100], atol=2e-3)


def test_another_rate_raises_with_both_or_is_converted():
    value = Waveform(SAMPLES, 16000)
    with pytest.raises(DataError, match="16000 Hz, but the model takes 8000 Hz; set resample"):
        audio().encode(value)
    assert audio(resample=True).encode(value).shape == (200,)


def test_audio_that_is_too_short_or_too_long_raises():
    value = Waveform(SAMPLES, 8000)
    with pytest.raises(DataError, match=r"the audio has 0.05 s; the minimum is 0.1 s"):
        audio(min_seconds=0.1).encode(value)
    with pytest.raises(DataError, match=r"the audio has 0.05 s; the maximum is 0.01 s"):
        audio(max_seconds=0.01).encode(value)
    with pytest.raises(DataError, match="the audio has no samples"):
        audio().encode(Waveform(SAMPLES[:0], 8000))
    with pytest.raises(ZooError, match=r"max_seconds \(0.1\) must not be less than min_seconds"):
        audio(min_seconds=0.2, max_seconds=0.1)


def test_invalid_samples_raise():
    for wrong in (np.nan, np.inf):
        samples = SAMPLES.copy()
        samples[7] = wrong
        with pytest.raises(DataError, match="sample 7 of the audio is NaN or infinite"):
            audio().encode(Waveform(samples, 8000))
    with pytest.raises(DataError, match=r"expected samples \[L\] as floats.*int16 \[3\]"):
        audio().encode((np.array([1, 2, 3], np.int16), 8000))
    with pytest.raises(DataError, match="expected audio"):
        audio().encode(SAMPLES)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_a_file_is_read(tmp_path, suffix):
    soundfile.write(tmp_path / f"a{suffix}", SAMPLES, 8000)
    value = audio().read(tmp_path / f"a{suffix}")
    np.testing.assert_allclose(audio().encode(value), SAMPLES, atol=1e-4)


def test_a_model_that_does_not_take_waveforms_is_rejected():
    with pytest.raises(ZooError, match=r"makes waveforms, float \[B, L\].*integer \[B, S\]"):
        audio(schema=TensorSchema(("B", "S"), "integer")).outputs("source")
