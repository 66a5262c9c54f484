"""Windowed Fourier transform and mel filter bank."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

MelScale = Literal["htk", "slaney"]

# The Slaney scale is linear up to 1000 Hz, which is 15 mels, and logarithmic above.
_HZ_PER_MEL, _MIN_LOG_HZ = 200 / 3, 1000.0
_MIN_LOG_MEL = _MIN_LOG_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27


def hz_to_mel(hz: float, scale: MelScale) -> float:
    """Convert a frequency to mels."""
    if scale == "htk":
        return 2595 * math.log10(1 + hz / 700)
    if hz < _MIN_LOG_HZ:
        return hz / _HZ_PER_MEL
    return _MIN_LOG_MEL + math.log(hz / _MIN_LOG_HZ) / _LOG_STEP


def mel_to_hz(mels: Tensor, scale: MelScale) -> Tensor:
    """Convert mels to frequencies."""
    if scale == "htk":
        return 700 * (10 ** (mels / 2595) - 1)
    above = _MIN_LOG_HZ * ((mels - _MIN_LOG_MEL).clamp(min=0) * _LOG_STEP).exp()
    return torch.where(mels < _MIN_LOG_MEL, mels * _HZ_PER_MEL, above)


def windowed_dft(window: int, fft: int, *, like: Tensor, taper: Tensor | None = None) -> Tensor:
    """Return cosines and sines times the taper, a Hann window if None: [2, 1, window, bins].

    A real DFT as a matrix product, because torch.compile does not support complex numbers. It is
    computed in float64: in float32, errors of the angles change the energies of weak bands.
    """
    device, dtype = like.device, torch.float64
    n = torch.arange(window, device=device)[:, None]
    k = torch.arange(fft // 2 + 1, device=device)
    angle = (n * k % fft).to(dtype) * (2 * math.pi / fft)  # the integer modulo keeps it exact
    if taper is None:
        taper = torch.hann_window(window, device=device, dtype=dtype)
    waves = torch.stack([angle.cos(), angle.sin()])[:, None] * taper[:, None]
    return waves.to(like.dtype)


def mel_filter_bank(
    bands: int,
    bins: int,
    *,
    rate: int,
    low: float,
    high: float,
    scale: MelScale,
    area_norm: bool,
    device: torch.device,
    dtype: torch.dtype,
) -> Tensor:
    """Return triangular filters [bins, bands], equally spaced in mels between low and high.

    Each filter rises from the centre of the previous one and falls to that of the next. With
    ``area_norm``, all filters have the same area.
    """
    ends = (hz_to_mel(low, scale), hz_to_mel(high, scale))
    edges = mel_to_hz(torch.linspace(*ends, bands + 2, device=device, dtype=dtype), scale)
    hz = torch.linspace(0, rate / 2, bins, device=device, dtype=dtype)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (hz - left) / (centre - left)
    falling = (right - hz) / (right - centre)
    triangles = torch.minimum(rising, falling).clamp(min=0)  # [bins, bands]
    return triangles * (2 / (right - left)) if area_norm else triangles
