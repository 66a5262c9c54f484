"""Log-mel embedding: a waveform as the loudness of its pitches."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Embedding, full_precision
from zoo_ctc.mel import MelScale, mel_filter_bank, windowed_dft


class LogMel(Embedding):
    r"""Measures how loud each of some bands of pitch is, window by window.

    .. math::
        x_{sm} = \log \max\Big(\epsilon,\, \sum_k M_{km} \Big| \sum_{n<N} w_n\, a_{sH+n}\,
        e^{-2\pi i k n / F} \Big|^2 \Big), \qquad w_n = \tfrac12 - \tfrac12 \cos(2 \pi n / N)

    Frame s holds the N samples from sH on, nothing is put before the first or after the last, and
    samples that fill no window are left out: n samples give 1 + (n - N) // H frames. The exact
    zeros at the end of a waveform are its padding, so a recording that ends in digital silence
    ends sooner. Half precision is computed in float32. There is nothing to learn here.

    Paper: Davis and Mermelstein 1980, section 2; Slaney 1998, Auditory Toolbox, for his scale.

    Args:
        rate: samples a second.
        window: samples of a frame, N.
        hop: samples from one frame to the next, H.
        fft: length of the Fourier transform, F, the frame filled up with zeros; N if not set.
        mels: how many bands there are.
        low: where the lowest band begins, in hertz.
        high: where the highest ends; half the rate if not set.
        scale: how far apart frequencies sound, after HTK or after Slaney.
        area: give every band's filter the same area instead of the same height.
        normalise: shift and scale each band to mean 0 and variance 1 over an item's frames.

    Shapes:
        [B, n] -> [B, 1 + (n - window) // hop, mels].
    """

    name: ClassVar[str] = "log-mel"
    paper: ClassVar[str] = (
        "Davis and Mermelstein 1980, Comparison of Parametric Representations for Monosyllabic "
        "Word Recognition in Continuously Spoken Sentences"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"rate": 1000, "window": 32, "hop": 16, "mels": 4}

    FLOOR: ClassVar[float] = 1e-10
    like: Tensor

    def __init__(
        self,
        *,
        rate: Annotated[int, Field(ge=1)] = 16000,
        window: Annotated[int, Field(ge=2)] = 400,
        hop: Annotated[int, Field(ge=1)] = 160,
        fft: Annotated[int, Field(ge=2)] | None = None,
        mels: Annotated[int, Field(ge=1)] = 80,
        low: Annotated[float, Field(ge=0)] = 0.0,
        high: Annotated[float, Field(gt=0)] | None = None,
        scale: MelScale = "slaney",
        area: bool = False,
        normalise: bool = False,
    ) -> None:
        super().__init__()
        self.dim = mels
        self.rate = rate
        self.window = window
        self.hop = hop
        self.fft = window if fft is None else fft
        self.low = low
        self.high = rate / 2 if high is None else high
        self.scale: MelScale = scale
        self.area = area
        self.normalise = normalise
        if self.fft < window:
            raise ZooError(f"fft ({self.fft}) must not be below window ({window})")
        if not low < self.high <= rate / 2:
            raise ZooError(
                f"low ({low:g}) and high ({self.high:g}) must be in order, up to half the rate "
                f"({rate / 2:g})"
            )
        # Follows the model's dtype, for the vectors to come in.
        self.register_buffer("like", torch.empty(0), persistent=False)
        empty = (
            (self._mel_filters(torch.empty(0, device="cpu")).sum(dim=0) == 0).nonzero().flatten()
        )
        if len(empty):
            raise ZooError(
                f"band {int(empty[0])} of {mels} holds none of the {self.fft // 2 + 1} frequencies "
                "of the Fourier transform; take fewer mels or a longer fft"
            )

    def forward(self, inputs: Tensor) -> Tensor:
        mask = self.mask(inputs)
        samples = full_precision(inputs)
        frames = samples.unfold(1, self.window, self.hop)  # [B, S, N]
        spectrum = frames @ windowed_dft(
            self.window, self.fft, like=samples
        )  # [2, B, S, F // 2 + 1]
        power = spectrum.square().sum(dim=0)
        vectors = (power @ self._mel_filters(samples)).clamp(min=self.FLOOR).log()
        if self.normalise:
            vectors = _normalise(vectors, mask)
        return vectors.masked_fill(~mask[..., None], 0.0).to(self.like.dtype)

    def mask(self, inputs: Tensor) -> Tensor:
        n = inputs.shape[-1]
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"a waveform is samples [B, n] in floating point, not {inputs.dtype} "
                f"{list(inputs.shape)}"
            )
        if n < self.window:
            raise ZooError(f"a waveform of {n} samples is shorter than a window ({self.window})")
        places = torch.arange(1, n + 1, device=inputs.device)
        real = (places * (inputs != 0)).amax(dim=1)  # [B], samples up to the last that is not 0
        last = self.hop * torch.arange(1 + (n - self.window) // self.hop, device=inputs.device)
        return last + self.window <= real[:, None]

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = generator.device if generator else self.like.device
        shape = (batch, self.window + (length - 1) * self.hop)
        return torch.randn(shape, generator=generator, device=device).to(self.like)

    def _mel_filters(self, like: Tensor) -> Tensor:
        """Made anew each time, for a buffer would lose its precision with the model's."""
        return mel_filter_bank(
            self.dim,
            self.fft // 2 + 1,
            rate=self.rate,
            low=self.low,
            high=self.high,
            scale=self.scale,
            area=self.area,
            device=like.device,
            dtype=like.dtype,
        )


def _normalise(vectors: Tensor, mask: Tensor) -> Tensor:
    """vectors [B, S, D] with mean 0 and variance 1 over the real places of S."""
    real = mask[..., None]
    count = real.sum(dim=1, keepdim=True).clamp(min=1)
    centred = vectors - vectors.where(real, 0.0).sum(dim=1, keepdim=True) / count
    variance = centred.where(real, 0.0).square().sum(dim=1, keepdim=True) / count
    return centred / (variance + 1e-5).sqrt()
