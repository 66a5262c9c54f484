"""Polyphase resampling of waveforms."""

from math import ceil, gcd

import numpy as np

from zoo.plugin import Array

_HALF_WIDTH = 10
"""Half of the filter's length, in periods of the lower rate."""
_BETA = 5.0
"""Shape of the Kaiser window."""


def resample(samples: Array, rate: int, new_rate: int) -> Array:
    """Return a waveform [N] at another rate, [ceil(N * new_rate / rate)].

    The waveform is upsampled by zeros, filtered by a windowed sinc at the lower of both Nyquist
    frequencies, and downsampled. Only the output samples are computed: output i is the sum over
    the taps whose position has the same phase.
    """
    common = gcd(rate, new_rate)
    up, down = new_rate // common, rate // common
    taps = _low_pass(up, down)
    half = len(taps) // 2
    length = ceil(len(samples) * up / down)
    per_phase = ceil(len(taps) / up)
    padded = np.pad(samples, per_phase)
    # Output i is at position i * down of the upsampled signal; sample n is at n * up.
    position = np.arange(length) * down + half
    newest, phase = position // up, position % up
    result = np.zeros(length)
    banks = np.zeros((per_phase, up))
    banks.reshape(-1)[: len(taps)] = taps
    for k in range(per_phase):
        index = np.clip(newest - k + per_phase, 0, len(padded) - 1)
        result += banks[k, phase] * padded[index]
    return result


def _low_pass(up: int, down: int) -> Array:
    """Return the taps of a Kaiser-windowed sinc with the cutoff of the lower rate."""
    factor = max(up, down)
    half = _HALF_WIDTH * factor
    offsets = np.arange(-half, half + 1) / factor
    taps = np.sinc(offsets) * np.kaiser(2 * half + 1, _BETA)
    return np.asarray(taps / taps.sum() * up)
