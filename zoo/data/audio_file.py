"""Reading of audio files."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zoo.data.bounds import max_content, too_large
from zoo.errors import DataError, MissingExtra
from zoo.interfaces import Audio

MAX_RATE = 1_000_000
"""Highest sampling rate, in Hz."""
_UNKNOWN_BYTES = 0x7FFFF000
_MAX_PAGE, _LAST_PAGE = 2 * 65_307, 4
"""Bytes that contain the last page of an Ogg file, and the bit of its header."""
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_OTHER_FORMATS = {".flac", ".ogg", ".mp3", ".aiff", ".aif"}


def read_audio(source: str | os.PathLike[str] | bytes) -> Audio:
    """Return the waveform in a file; channels are averaged.

    WAV files (PCM of 8 to 32 bits, floats of 32 and 64 bits) need no other library; FLAC and other
    formats need soundfile. The samples have at most `max_content` bytes.

    Args:
        source: path of the file, or its content.

    Raises:
        DataError: if the file is missing, or is not valid audio.
    """
    file, is_wav = _describe(source)
    try:
        with _open(source) as stream:
            if not is_wav:
                return _read_with_soundfile(stream, file)
            header = _read_header(stream, file)
            data = stream.read(_present_bytes(header, stream, file))
    except OSError as error:
        raise _unreadable(file, error) from None
    frames = len(data) // header.frame_bytes
    samples = _to_float(data[: frames * header.frame_bytes], header, file)
    mono = samples.reshape(frames, header.channels).mean(axis=1, dtype=np.float64)
    return Audio(mono.astype(np.float32), header.rate)


def audio_length(path: str | os.PathLike[str]) -> int:
    """Return the number of samples of a file (per channel) from its header.

    Raises:
        DataError: if the file is missing, or is not valid audio.
    """
    file, is_wav = _describe(path)
    try:
        with _open(path) as stream:
            if not is_wav:
                with _open_with_soundfile(stream, file) as sound:
                    return int(sound.frames)
            header = _read_header(stream, file)
            return _present_bytes(header, stream, file) // header.frame_bytes
    except OSError as error:
        raise _unreadable(file, error) from None


def _describe(source: str | os.PathLike[str] | bytes) -> tuple[str, bool]:
    """Return the name of a file in errors, and whether it is read as a WAV file."""
    if isinstance(source, bytes):
        return "audio", source[:4] == b"RIFF"
    return os.fspath(source), Path(source).suffix.lower() not in _OTHER_FORMATS


def _open(source: str | os.PathLike[str] | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def _remaining(stream: BinaryIO) -> int:
    """Return the number of bytes after the position of a stream."""
    position = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(position)
    return max(size - position, 0)


def _present_bytes(header: _Header, stream: BinaryIO, file: str) -> int:
    """Return the number of bytes of the samples; raise DataError if the file has not all of them.

    Programs that write to a pipe do not know the number; they write a very large one.
    """
    present = _remaining(stream)
    if header.data_bytes >= _UNKNOWN_BYTES:
        return present
    if present < header.data_bytes:
        raise _truncated(
            header.data_bytes // header.frame_bytes, present // header.frame_bytes, file
        )
    return header.data_bytes


def _truncated(expected: int, present: int, file: str) -> DataError:
    return DataError(
        f"the audio is truncated: its header says {expected:,} samples per channel, but the file "
        f"has {present:,}; copy or download it again",
        file,
    )


def _check_end(stream: BinaryIO, file: str) -> None:
    """Raise DataError for an AIFF or Ogg file whose end is missing, which soundfile reads."""
    size, start = _remaining(stream), stream.read(8)
    if start[:4] == b"FORM" and (expected := struct.unpack(">I", start[4:])[0] + 8) > size:
        raise DataError(
            f"the audio is truncated: its header says {expected:,} bytes, but the file has {size:,}"
            "; copy or download it again",
            file,
        )
    if start[:4] == b"OggS":
        stream.seek(max(size - _MAX_PAGE, 0))
        end = stream.read()
        page = end[max(end.rfind(b"OggS"), 0) :]
        segments = page[26] if len(page) > 26 else 0
        length = 27 + segments + sum(page[27 : 27 + segments])
        if len(page) < max(length, 28) or not page[5] & _LAST_PAGE:
            raise DataError(
                "the audio is truncated: its last Ogg page is missing; copy or download it again",
                file,
            )
    stream.seek(0)


class _Header(NamedTuple):
    encoding: int
    channels: int
    rate: int
    sample_bytes: int
    data_bytes: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * self.sample_bytes


def _read_header(stream: BinaryIO, file: str) -> _Header:
    """Return the format of a RIFF file; the stream is then at its first sample."""
    start = stream.read(12)
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        raise DataError("it is not a WAV file; other formats are read by extension", file)
    found: tuple[int, int, int, int] | None = None
    while len(chunk := stream.read(8)) == 8:
        name, size = chunk[:4], struct.unpack("<I", chunk[4:])[0]
        if name == b"data" and found is not None:
            encoding, channels, rate, bits = found
            return _Header(encoding, channels, rate, bits // 8, size)
        if name == b"fmt " and 16 <= size <= 1024:
            content = stream.read(size + size % 2)
            if len(content) < 16:
                break
            encoding, channels, rate, _, _, bits = struct.unpack("<HHIIHH", content[:16])
            if encoding == _EXTENSIBLE and len(content) >= 26:
                encoding = struct.unpack("<H", content[24:26])[0]
            supported = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}.get(encoding, ())
            _check_rate(rate, file)
            if bits not in supported or not channels:
                raise DataError(
                    f"WAV encoding {encoding} with {bits} bits, {channels} channels and {rate} Hz "
                    "is not supported; convert the file to 16-bit PCM",
                    file,
                )
            found = encoding, channels, rate, bits
        else:
            stream.seek(size + size % 2, os.SEEK_CUR)
    raise DataError("the WAV file has no samples: its header is incomplete", file)


def _to_float(data: bytes, header: _Header, file: str) -> NDArray[np.floating]:
    if header.encoding == _FLOAT:
        return np.frombuffer(data, f"<f{header.sample_bytes}")
    if header.sample_bytes == 1:
        return np.frombuffer(data, np.uint8).astype(np.float32) / 128 - 1
    if header.sample_bytes == 3:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.reshape(-1).view("<i4") / np.float64(2**31)
    return np.frombuffer(data, f"<i{header.sample_bytes}") / np.float64(
        2 ** (8 * header.sample_bytes - 1)
    )


def _read_with_soundfile(stream: BinaryIO, file: str) -> Audio:
    with _open_with_soundfile(stream, file) as sound:
        samples = sound.read(dtype="float32", always_2d=True)
        if len(samples) < sound.frames:
            raise _truncated(sound.frames, len(samples), file)
        return Audio(samples.mean(axis=1, dtype=np.float64).astype(np.float32), sound.samplerate)


@contextmanager
def _open_with_soundfile(stream: BinaryIO, file: str) -> Iterator[Any]:
    soundfile = _import_soundfile()
    _check_end(stream, file)
    try:
        with soundfile.SoundFile(stream) as sound:
            bound = max_content(_remaining(stream) + stream.tell())
            count = sound.frames * sound.channels * np.dtype(np.float32).itemsize
            if count > bound:
                raise too_large(f"its samples have {count:,} bytes; the limit is {bound:,}", file)
            _check_rate(sound.samplerate, file)
            yield sound
    except RuntimeError as error:
        raise DataError(f"it is not valid audio: {error}", file) from None


def _import_soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError):
        raise MissingExtra("reading FLAC", library="soundfile", extra="audio") from None
    return soundfile


def _check_rate(rate: int, file: str) -> None:
    if not 1 <= rate <= MAX_RATE:
        raise DataError(
            f"the audio has a sampling rate of {rate:,} Hz; expected 1 to {MAX_RATE:,}", file
        )


def _unreadable(file: str, error: OSError) -> DataError:
    return DataError(f"cannot be read: {(error.strerror or str(error)).lower()}", file)
