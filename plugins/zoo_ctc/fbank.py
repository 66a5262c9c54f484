"""Mel filter bank features as Kaldi computes them."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema, full_precision
from zoo_ctc.mel import windowed_dft


class Fbank(Embedding):
    r"""Logarithmic mel filter bank energies of a waveform, as in Kaldi.

    .. math::
        \tilde a_{sn} = a_{sH+n} - \bar a_s, \qquad
        d_{sn} = w_n (\tilde a_{sn} - p\, \tilde a_{s,n-1}), \qquad
        x_{sm} = \log \max\Big(\epsilon, \sum_k M_{km} \Big| \sum_{n<N} d_{sn}\,
        e^{-2\pi i k n / F} \Big|^2 \Big)

    The mean of each frame is removed, then p, the pre-emphasis, amplifies high frequencies; the
    window w is a Hann window to the power 0.85, and filters are triangles in mels. Samples count as
    16-bit integers, and ε is 2^-23. Features are then normalised over the frames of an item.

    Waveforms are padded at the end with NaN, and frames that would include padding are masked. It
    is computed in float64, because energies of weak bands lose digits in float32.

    Paper: Povey et al. 2011, section III; normalisation as in Wang et al. 2020 (fairseq S2T).

    Args:
        rate: sample rate in hertz.
        window: window length N in samples.
        hop: hop length H in samples.
        fft: FFT length F; frames are zero-padded.
        mels: number of mel bands.
        low: lower edge of the lowest band in hertz; the highest band ends at half the rate.
        preemphasis: p.
        subtract_means: subtract the mean of each band.
        divide_deviations: divide each band by its standard deviation.

    Shapes:
        [B, L] -> [B, 1 + (L - window) // hop, mels].
    """

    name: ClassVar[str] = "fbank"
    paper: ClassVar[str] = "Povey et al. 2011, The Kaldi Speech Recognition Toolkit"
    test_params: ClassVar[Mapping[str, Any]] = {
        "rate": 1000,
        "window": 32,
        "hop": 16,
        "fft": 32,
        "mels": 4,
    }

    MIN_ENERGY: ClassVar[float] = 2.0**-23
    dtype_buffer: Tensor

    def __init__(
        self,
        *,
        rate: Annotated[int, Field(ge=1)] = 16000,
        window: Annotated[int, Field(ge=2)] = 400,
        hop: Annotated[int, Field(ge=1)] = 160,
        fft: Annotated[int, Field(ge=2)] = 512,
        mels: Annotated[int, Field(ge=1)] = 80,
        low: Annotated[float, Field(ge=0)] = 20.0,
        preemphasis: Annotated[float, Field(ge=0, lt=1)] = 0.97,
        subtract_means: bool = True,
        divide_deviations: bool = True,
    ) -> None:
        super().__init__()
        self.dim = self.mels = mels
        self.rate, self.window, self.hop, self.fft = rate, window, hop, fft
        self.low, self.preemphasis = low, preemphasis
        self.subtract_means, self.divide_deviations = subtract_means, divide_deviations
        if fft < window:
            raise ZooError(f"fft ({fft}) must be at least window ({window})")
        if low >= rate / 2:
            raise ZooError(f"low ({low:g}) must be less than half the rate ({rate / 2:g})")
        # An empty buffer follows the model's dtype and device; the output has the same dtype.
        self.register_buffer("dtype_buffer", torch.empty(0), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        valid = self.mask(inputs)[..., None]
        features = self._normalise(self._log_energies(inputs.nan_to_num(nan=0.0)), valid)
        return features.masked_fill(~valid, 0.0).to(self.dtype_buffer.dtype)

    @full_precision
    def _log_energies(self, samples: Tensor) -> Tensor:
        """Compute the logarithms of the band energies [B, S, mels] of samples [B, L]."""
        frames = samples.double().unfold(1, self.window, self.hop) * 2**15  # [B, S, N]
        frames = frames - frames.mean(dim=-1, keepdim=True)
        before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
        frames = frames - self.preemphasis * before
        hann = torch.hann_window(
            self.window, periodic=False, dtype=frames.dtype, device=frames.device
        )
        dft = windowed_dft(self.window, self.fft, like=frames, taper=hann**0.85)
        power = (frames @ dft).square().sum(dim=0)  # [B, S, F // 2 + 1]
        return (power @ self._filters(frames)).clamp(min=self.MIN_ENERGY).log()

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "L"), "float", pad=math.nan)

    def mask(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"embedding '{self.name}' expects floating-point samples [B, L], but got "
                f"{inputs.dtype} {list(inputs.shape)}"
            )
        length = inputs.shape[1]
        if length < self.window:
            raise ZooError(
                f"waveforms have {length} samples, but one window has {self.window}; pad the "
                "waveforms or use a shorter window"
            )
        starts = self.hop * torch.arange(
            1 + (length - self.window) // self.hop, device=inputs.device
        )
        lengths = (~inputs.isnan()).sum(dim=1)
        return starts + self.window <= lengths[:, None]

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = generator.device if generator else self.dtype_buffer.device
        shape = (batch, self.window + (length - 1) * self.hop)
        return torch.randn(shape, generator=generator, device=device).to(self.dtype_buffer)

    def _filters(self, like: Tensor) -> Tensor:
        """Compute the filters [F // 2 + 1, mels]: triangles in mels, of height 1."""
        hz = self.rate / self.fft * torch.arange(self.fft // 2 + 1, device=like.device)
        mels = (1 + hz.to(like.dtype) / 700).log()[:, None]
        ends = math.log(1 + self.low / 700), math.log(1 + self.rate / 2 / 700)
        edges = torch.linspace(*ends, self.mels + 2, dtype=like.dtype, device=like.device)
        left, centre, right = edges[:-2], edges[1:-1], edges[2:]
        rising, falling = (mels - left) / (centre - left), (right - mels) / (right - centre)
        return torch.minimum(rising, falling).clamp(min=0)

    def _normalise(self, features: Tensor, valid: Tensor) -> Tensor:
        """Normalise features [B, S, mels] over the valid frames."""
        count = valid.sum(dim=1, keepdim=True).clamp(min=1)
        means = features.where(valid, 0.0).sum(dim=1, keepdim=True) / count
        centred = features - means
        if self.subtract_means:
            features = centred
        if self.divide_deviations:
            variances = centred.square().where(valid, 0.0).sum(dim=1, keepdim=True) / count
            features = features / variances.sqrt().clamp(min=1e-10)
        return features
