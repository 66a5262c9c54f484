"""Polyphase resampling of waveforms."""

from math import ceil, gcd

import numpy as np

from zoo import DataError
from zoo.plugin import Array

_HALF_WIDTH = 10
"""Half of the filter's length, in periods of the lower rate."""
_BETA = 5.0
"""Shape of the Kaiser window."""
_MAX_FACTOR = 100_000
"""Largest factor of the filter's length: the higher of both rates, divided by common factors."""
_MAX_SMALL = 2**24
_MAX_GROWTH = 100
"""A result of more samples than `_MAX_SMALL` has at most this many times those of the waveform."""
_CHUNK = 2**16


def resample(samples: Array, rate: int, new_rate: int) -> Array:
    """Return a waveform [N] at another rate, [ceil(N * new_rate / rate)].

    The waveform is upsampled by zeros, filtered by a windowed sinc at the lower of both Nyquist
    frequencies, and downsampled. Only the output samples are computed: output i is the sum over
    the taps whose position has the same phase.
    """
    common = gcd(rate, new_rate)
    up, down = new_rate // common, rate // common
    length = ceil(len(samples) * up / down)
    if max(up, down) > _MAX_FACTOR or length > max(_MAX_SMALL, _MAX_GROWTH * len(samples)):
        raise DataError(
            f"{len(samples):,} samples at {rate:,} Hz cannot be converted to {new_rate:,} Hz, "
            f"which takes {length:,} samples and a filter of {_filter_length(up, down):,}; convert "
            "the file with another program"
        )
    taps = _low_pass(up, down)
    half = len(taps) // 2
    per_phase = ceil(len(taps) / up)
    padded = np.pad(samples, per_phase)
    result = np.zeros(length)
    banks = np.zeros((per_phase, up))
    banks.reshape(-1)[: len(taps)] = taps
    for start in range(0, length, _CHUNK):
        # Output i is at position i * down of the upsampled signal; sample n is at n * up.
        position = np.arange(start, min(start + _CHUNK, length)) * down + half
        newest, phase = position // up, position % up
        for k in range(per_phase):
            index = np.clip(newest - k + per_phase, 0, len(padded) - 1)
            result[start : start + _CHUNK] += banks[k, phase] * padded[index]
    return result


def _filter_length(up: int, down: int) -> int:
    return 2 * _HALF_WIDTH * max(up, down) + 1


def _low_pass(up: int, down: int) -> Array:
    """Return the taps of a Kaiser-windowed sinc with the cutoff of the lower rate."""
    factor = max(up, down)
    half = _HALF_WIDTH * factor
    offsets = np.arange(-half, half + 1) / factor
    taps = np.sinc(offsets) * np.kaiser(_filter_length(up, down), _BETA)
    return np.asarray(taps / taps.sum() * up)
