"""Reading of audio files."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zoo.errors import DataError, MissingExtra
from zoo.interfaces import Audio

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_OTHER_FORMATS = {".flac", ".ogg", ".mp3", ".aiff", ".aif"}


def read_audio(path: str | os.PathLike[str]) -> Audio:
    """Return the waveform in a file; channels are averaged.

    WAV files (PCM of 8 to 32 bits, floats of 32 and 64 bits) need no other library; FLAC and other
    formats need soundfile.

    Raises:
        DataError: if the file is missing, or is not valid audio.
    """
    file = Path(path)
    if file.suffix.lower() in _OTHER_FORMATS:
        return _read_with_soundfile(file)
    try:
        with file.open("rb") as stream:
            header = _read_header(stream, file)
            data = stream.read(header.data_bytes)
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
    file = Path(path)
    if file.suffix.lower() in _OTHER_FORMATS:
        soundfile = _import_soundfile()
        try:
            return int(soundfile.info(str(file)).frames)
        except (OSError, RuntimeError) as error:
            raise _invalid(file, error) from None
    try:
        with file.open("rb") as stream:
            header = _read_header(stream, file)
            available = os.fstat(stream.fileno()).st_size - stream.tell()
    except OSError as error:
        raise _unreadable(file, error) from None
    return min(header.data_bytes, available) // header.frame_bytes


class _Header(NamedTuple):
    encoding: int
    channels: int
    rate: int
    sample_bytes: int
    data_bytes: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * self.sample_bytes


def _read_header(stream: BinaryIO, file: Path) -> _Header:
    """Return the format of a RIFF file; the stream is then at its first sample."""
    start = stream.read(12)
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        raise DataError("it is not a WAV file; other formats are read by extension", str(file))
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
            if bits not in supported or not channels or not rate:
                raise DataError(
                    f"WAV encoding {encoding} with {bits} bits, {channels} channels and {rate} Hz "
                    "is not supported; convert the file to 16-bit PCM",
                    str(file),
                )
            found = encoding, channels, rate, bits
        else:
            stream.seek(size + size % 2, os.SEEK_CUR)
    raise DataError("the WAV file has no samples: its header is incomplete", str(file))


def _to_float(data: bytes, header: _Header, file: Path) -> NDArray[np.floating]:
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


def _read_with_soundfile(file: Path) -> Audio:
    soundfile = _import_soundfile()
    try:
        with file.open("rb") as stream:
            samples, rate = soundfile.read(stream, dtype="float32", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise _invalid(file, error) from None
    return Audio(samples.mean(axis=1, dtype=np.float64).astype(np.float32), int(rate))


def _import_soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError):
        raise MissingExtra("reading FLAC", library="soundfile", extra="audio") from None
    return soundfile


def _unreadable(file: Path, error: OSError) -> DataError:
    return DataError(f"cannot be read: {(error.strerror or str(error)).lower()}", str(file))


def _invalid(file: Path, error: Exception) -> DataError:
    if isinstance(error, OSError):
        return _unreadable(file, error)
    if not file.is_file():
        return DataError("cannot be read: no such file or directory", str(file))
    return DataError(f"it is not valid audio: {error}", str(file))
