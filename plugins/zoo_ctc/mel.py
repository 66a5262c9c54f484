"""Sound by pitch: Fourier transform, and the mel scale of how far apart pitches sound."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

MelScale = Literal["htk", "slaney"]

# Slaney's scale is linear below 1000 Hz, 15 mels there, and logarithmic above.
_HZ_PER_MEL, _MIN_LOG_HZ = 200 / 3, 1000.0
_MIN_LOG_MEL = _MIN_LOG_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27


def mel(hz: float, scale: MelScale) -> float:
    """A frequency on the scale."""
    if scale == "htk":
        return 2595 * math.log10(1 + hz / 700)
    if hz < _MIN_LOG_HZ:
        return hz / _HZ_PER_MEL
    return _MIN_LOG_MEL + math.log(hz / _MIN_LOG_HZ) / _LOG_STEP


def mel_to_hz(mels: Tensor, scale: MelScale) -> Tensor:
    """The frequencies at places on the scale."""
    if scale == "htk":
        return 700 * (10 ** (mels / 2595) - 1)
    above = _MIN_LOG_HZ * ((mels - _MIN_LOG_MEL).clamp(min=0) * _LOG_STEP).exp()
    return torch.where(mels < _MIN_LOG_MEL, mels * _HZ_PER_MEL, above)


def windowed_dft(window: int, fft: int, *, like: Tensor) -> Tensor:
    """Cosines and sines [2, 1, window, bins] under Hann's window: a Fourier transform of real
    numbers as a product, for compilers know no complex ones."""
    n = torch.arange(window, device=like.device)[:, None]
    k = torch.arange(fft // 2 + 1, device=like.device)
    angle = (n * k % fft).to(like.dtype) * (2 * math.pi / fft)  # exact up to the last product
    hann = torch.hann_window(window, device=like.device, dtype=like.dtype)[:, None]
    return torch.stack([angle.cos(), angle.sin()])[:, None] * hann


def mel_filter_bank(
    bands: int,
    bins: int,
    *,
    rate: int,
    low: float,
    high: float,
    scale: MelScale,
    area: bool,
    device: torch.device,
    dtype: torch.dtype,
) -> Tensor:
    """Triangles [bins, bands], evenly wide on the scale between low and high, each rising from
    the centre of the one before and falling to that of the next; with ``area``, all of one area.
    """
    ends = (mel(low, scale), mel(high, scale))
    edges = mel_to_hz(torch.linspace(*ends, bands + 2, device=device, dtype=dtype), scale)
    at = torch.linspace(0, rate / 2, bins, device=device, dtype=dtype)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (at - left) / (centre - left)
    falling = (right - at) / (right - centre)
    triangles = torch.minimum(rising, falling).clamp(min=0)  # [bins, bands]
    return triangles * (2 / (right - left)) if area else triangles
