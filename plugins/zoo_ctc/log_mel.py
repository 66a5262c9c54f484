"""Log-mel spectrogram embedding."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema, full_precision, rename_params
from zoo_ctc.mel import MelScale, mel_filter_bank, windowed_dft


class LogMel(Embedding):
    r"""Log-mel spectrogram of a waveform, without learned parameters.

    .. math::
        x_{sm} = \log \max\Big(\epsilon,\, \sum_k M_{km} \Big| \sum_{n<N} w_n\, a_{sH+n}\,
        e^{-2\pi i k n / F} \Big|^2 \Big), \qquad w_n = \tfrac12 - \tfrac12 \cos(2 \pi n / N)

    where ε is 1e-10. Frame s covers the N samples from sH on, without padding at either end: a
    waveform of L samples gives 1 + (L - N) // H frames. Zeros at the end of a waveform are treated
    as padding, including digital silence at the end of a recording. It is computed
    in float32 also for half-precision inputs and under autocast.

    Paper: Davis and Mermelstein 1980, section 2; Slaney 1998, Auditory Toolbox, for the Slaney
    scale.

    Args:
        rate: sample rate in hertz.
        window: window length N in samples.
        hop: hop length H in samples.
        fft: FFT length F; frames are zero-padded. By default N.
        mels: number of mel bands.
        low: lower edge of the lowest band in hertz.
        high: upper edge of the highest band in hertz; by default half the rate.
        scale: mel scale, "htk" or "slaney".
        area_norm: normalise the filters to equal area instead of equal height.
        normalise: normalise each band to mean 0 and variance 1 over the frames of an item.

    Shapes:
        [B, L] -> [B, 1 + (L - window) // hop, mels].
    """

    name: ClassVar[str] = "log-mel"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Davis and Mermelstein 1980, Comparison of Parametric Representations for Monosyllabic "
        "Word Recognition in Continuously Spoken Sentences"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"rate": 1000, "window": 32, "hop": 16, "mels": 4}

    MIN_ENERGY: ClassVar[float] = 1e-10
    dtype_buffer: Tensor

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
        area_norm: bool = False,
        normalise: bool = False,
    ) -> None:
        super().__init__()
        self.dim = self.mels = mels
        self.rate = rate
        self.window = window
        self.hop = hop
        self.fft = window if fft is None else fft
        self.low = low
        self.high = rate / 2 if high is None else high
        self.scale: MelScale = scale
        self.area_norm = area_norm
        self.normalise = normalise
        if self.fft < window:
            raise ZooError(f"fft ({self.fft}) must be at least window ({window})")
        if not low < self.high <= rate / 2:
            raise ZooError(
                f"low ({low:g}) must be less than high ({self.high:g}), and high at most half the "
                f"rate ({rate / 2:g})"
            )
        # An empty buffer follows the model's dtype and device; the output has the same dtype.
        self.register_buffer("dtype_buffer", torch.empty(0), persistent=False)
        empty = (
            (self._mel_filters(torch.empty(0, device="cpu")).sum(dim=0) == 0).nonzero().flatten()
        )
        if len(empty):
            raise ZooError(
                f"band {int(empty[0])} of {mels} contains none of the {self.fft // 2 + 1} FFT "
                "frequencies; use fewer mels or a larger fft"
            )

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, area="area_norm")
        return params, tensors

    def forward(self, inputs: Tensor) -> Tensor:
        mask = self.mask(inputs)
        vectors = self._log_energies(inputs)
        if self.normalise:
            vectors = _normalise(vectors, mask)
        return vectors.masked_fill(~mask[..., None], 0.0).to(self.dtype_buffer.dtype)

    @full_precision
    def _log_energies(self, samples: Tensor) -> Tensor:
        """Compute the logarithms of the band energies [B, S, mels] of samples [B, L]."""
        frames = samples.unfold(1, self.window, self.hop)  # [B, S, N]
        spectrum = frames @ windowed_dft(self.window, self.fft, like=samples)
        power = spectrum.square().sum(dim=0)  # [B, S, F // 2 + 1]
        return (power @ self._mel_filters(samples)).clamp(min=self.MIN_ENERGY).log()

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "L"), "float")

    def mask(self, inputs: Tensor) -> Tensor:
        length = inputs.shape[-1]
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"embedding '{self.name}' expects floating-point samples [B, L], but got "
                f"{inputs.dtype} {list(inputs.shape)}"
            )
        if length < self.window:
            raise ZooError(
                f"waveforms have {length} samples, but one window has {self.window}; pad the "
                "waveforms or use a shorter window"
            )
        sample_index = torch.arange(1, length + 1, device=inputs.device)
        lengths = (sample_index * (inputs != 0)).amax(dim=1)  # [B], up to the last non-zero sample
        start = self.hop * torch.arange(
            1 + (length - self.window) // self.hop, device=inputs.device
        )
        return start + self.window <= lengths[:, None]

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = generator.device if generator else self.dtype_buffer.device
        shape = (batch, self.window + (length - 1) * self.hop)
        return torch.randn(shape, generator=generator, device=device).to(self.dtype_buffer)

    def _mel_filters(self, like: Tensor) -> Tensor:
        """Compute the filters in full precision.

        They are not a buffer, because a buffer is converted to the model's dtype.
        """
        return mel_filter_bank(
            self.dim,
            self.fft // 2 + 1,
            rate=self.rate,
            low=self.low,
            high=self.high,
            scale=self.scale,
            area_norm=self.area_norm,
            device=like.device,
            dtype=like.dtype,
        )


def _normalise(vectors: Tensor, mask: Tensor) -> Tensor:
    """Normalise vectors [B, S, D] to mean 0 and variance 1 over the valid frames."""
    valid = mask[..., None]
    count = valid.sum(dim=1, keepdim=True).clamp(min=1)
    centred = vectors - vectors.where(valid, 0.0).sum(dim=1, keepdim=True) / count
    variance = centred.where(valid, 0.0).square().sum(dim=1, keepdim=True) / count
    return centred / (variance + 1e-5).sqrt()
