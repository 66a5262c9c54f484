import io
import wave

import numpy as np
import pytest
import soundfile

from zoo import DataError
from zoo.plugin import audio_length, read_audio

SAMPLES = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))


@pytest.mark.parametrize(
    ("subtype", "suffix"),
    [
        ("PCM_U8", ".wav"),
        ("PCM_16", ".wav"),
        ("PCM_24", ".wav"),
        ("PCM_32", ".wav"),
        ("FLOAT", ".wav"),
        ("DOUBLE", ".wav"),
        ("PCM_16", ".flac"),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_a_file_is_read_as_by_soundfile(tmp_path, subtype, suffix, channels):
    path = tmp_path / f"a{suffix}"
    soundfile.write(path, SAMPLES[:, :channels], 16_000, subtype=subtype)
    expected, rate = soundfile.read(path, always_2d=True)
    found = read_audio(path)
    assert (found.rate, found.samples.dtype) == (rate, np.float32)
    np.testing.assert_allclose(found.samples, expected.mean(axis=1), atol=1e-6)
    assert audio_length(path) == 50


def test_an_extensible_header_is_read(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, SAMPLES, 8_000, format="WAVEX", subtype="PCM_16")
    assert read_audio(path).rate == 8_000
    assert audio_length(path) == 50


def test_a_file_of_the_standard_library_has_the_known_values(tmp_path):
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(np.array([0, 16_384, -32_768], "<i2").tobytes())
    assert read_audio(path).samples.tolist() == [0.0, 0.5, -1.0]


@pytest.mark.parametrize("read", [read_audio, audio_length])
def test_a_truncated_file_is_rejected(tmp_path, read):
    path = tmp_path / "a.wav"
    soundfile.write(path, SAMPLES[:, 0], 8_000, subtype="PCM_16")
    path.write_bytes(path.read_bytes()[:-11])
    with pytest.raises(
        DataError, match=r"truncated: its header says 50 samples .* has 44"
    ) as error:
        read(path)
    assert error.value.origin == str(path)


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [(".ogg", "its last Ogg page"), (".aiff", "its header says [0-9,]+ bytes"), (".flac", "lost")],
)
def test_truncated_files_of_other_formats_are_rejected(tmp_path, suffix, reason):
    path = tmp_path / f"a{suffix}"
    soundfile.write(path, np.zeros(60_000), 8_000)
    content = path.read_bytes()
    assert len(read_audio(path).samples) == len(read_audio(content).samples) == 60_000
    for length in (len(content) - 1, len(content) // 2):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=reason):
            read_audio(path)
        with pytest.raises(DataError, match=reason):
            read_audio(content[:length])


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFFFF])
def test_a_file_that_was_written_to_a_pipe_has_the_samples_that_are_there(tmp_path, size):
    path = tmp_path / "a.wav"
    soundfile.write(path, SAMPLES[:, 0], 8_000, subtype="PCM_16")
    content = path.read_bytes()
    position = content.index(b"data") + 4
    path.write_bytes(content[:position] + size.to_bytes(4, "little") + content[position + 4 :])
    assert len(read_audio(path).samples) == audio_length(path) == 50


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("read", [read_audio, audio_length])
def test_files_that_are_not_audio_are_rejected(tmp_path, suffix, read):
    path = tmp_path / f"a{suffix}"
    with pytest.raises(DataError, match=rf"a{suffix}: cannot be read: no such file"):
        read(path)
    path.write_bytes(b"no audio at all")
    with pytest.raises(DataError, match=rf"a{suffix}: it is not"):
        read(path)


def test_a_header_without_samples_and_an_unknown_encoding_are_rejected(tmp_path):
    buffer = io.BytesIO()
    soundfile.write(buffer, SAMPLES, 8_000, format="WAV", subtype="ULAW")
    (tmp_path / "a.wav").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="WAV encoding 7 with 8 bits, 2 channels and 8000 Hz"):
        read_audio(tmp_path / "a.wav")
    (tmp_path / "b.wav").write_bytes(buffer.getvalue()[:30])
    with pytest.raises(DataError, match="its header is incomplete"):
        read_audio(tmp_path / "b.wav")


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_the_content_of_a_file_is_read_like_the_file(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, np.linspace(-0.5, 0.5, 50), 8000)
    found, expected = read_audio(path.read_bytes()), read_audio(path)
    np.testing.assert_array_equal(found.samples, expected.samples)
    assert found.rate == expected.rate == 8000
    with pytest.raises(DataError, match="audio: it is not valid audio"):
        read_audio(b"no audio")
