"""Log-mel spectrogram of audio that is padded to a fixed length."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema, full_precision
from zoo_ctc.mel import mel_filter_bank, windowed_dft


class PaddedLogMel(Embedding):
    r"""Log-mel spectrogram of audio that is padded with silence to a fixed number of frames.

    .. math::
        e_{sm} = \log_{10} \max\Big(10^{-10}, \sum_k M_{km} \Big| \sum_{n<N} w_n\,
        a_{sH - N/2 + n}\, e^{-2\pi i k n / N} \Big|^2 \Big), \qquad
        x_{sm} = \frac{\max(e_{sm},\, \max e - 8) + 4}{4}

    Frames are centred, and the audio is reflected at both ends. No frame is masked: a model learns
    to ignore the silence at the end. Mel filters have the Slaney scale and equal area. It is
    computed in float32 also for half-precision inputs.

    Paper: Radford et al. 2023, section 2.2.

    Args:
        rate: sample rate in hertz.
        window: window length N in samples.
        hop: hop length H in samples.
        mels: number of mel bands.
        frames: number of frames S.

    Shapes:
        samples [B, L], L at most S H -> [B, S, mels].
    """

    name: ClassVar[str] = "padded-log-mel"
    paper: ClassVar[str] = (
        "Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision, "
        "arXiv:2212.04356"
    )
    test_params: ClassVar[Mapping[str, Any]] = {
        "rate": 1000,
        "window": 32,
        "hop": 16,
        "mels": 4,
        "frames": 3,
    }
    dtype_buffer: Tensor

    def __init__(
        self,
        *,
        rate: Annotated[int, Field(ge=2)] = 16000,
        window: Annotated[int, Field(ge=2)] = 400,
        hop: Annotated[int, Field(ge=1)] = 160,
        mels: Annotated[int, Field(ge=1)] = 80,
        frames: Annotated[int, Field(ge=1)] = 3000,
    ) -> None:
        super().__init__()
        self.dim = self.mels = mels
        self.rate, self.window, self.hop, self.frames = rate, window, hop, frames
        self.samples = frames * hop
        if window // 2 >= self.samples:
            raise ZooError(
                f"window ({window}) must be below twice the {self.samples} samples of all frames"
            )
        # An empty buffer follows the model's dtype and device; the output has the same dtype.
        self.register_buffer("dtype_buffer", torch.empty(0), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        self._check(inputs)
        return self._features(inputs).to(self.dtype_buffer.dtype)

    @full_precision
    def _features(self, samples: Tensor) -> Tensor:
        """Compute the features [B, S, mels] of samples [B, L]."""
        padded = F.pad(samples, (0, self.samples - samples.shape[1]))
        side = self.window // 2
        reflected = F.pad(padded[:, None], (side, side), mode="reflect")[:, 0]
        frames = reflected.unfold(1, self.window, self.hop)[:, : self.frames]  # [B, S, N]
        spectrum = frames @ windowed_dft(self.window, self.window, like=samples)
        power = spectrum.square().sum(dim=0)  # [B, S, N // 2 + 1]
        energies = (power @ self._mel_filters(samples)).clamp(min=1e-10).log10()
        loudest = energies.amax(dim=(1, 2), keepdim=True)
        return (energies.maximum(loudest - 8) + 4) / 4

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "L"), "float")

    def mask(self, inputs: Tensor) -> Tensor:
        self._check(inputs)
        return torch.ones(len(inputs), self.frames, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = generator.device if generator else self.dtype_buffer.device
        shape = (batch, min(length, self.frames) * self.hop)
        return torch.randn(shape, generator=generator, device=device).to(self.dtype_buffer)

    def _check(self, inputs: Tensor) -> None:
        if inputs.dim() != 2 or not inputs.is_floating_point():
            raise ZooError(
                f"embedding '{self.name}' expects floating-point samples [B, L], but got "
                f"{inputs.dtype} {list(inputs.shape)}"
            )
        if inputs.shape[1] > self.samples:
            raise ZooError(
                f"the audio has {inputs.shape[1] / self.rate:g} s, but at most "
                f"{self.samples / self.rate:g} s are supported; split it into shorter parts"
            )

    def _mel_filters(self, like: Tensor) -> Tensor:
        return mel_filter_bank(
            self.mels,
            self.window // 2 + 1,
            rate=self.rate,
            low=0.0,
            high=self.rate / 2,
            scale="slaney",
            area_norm=True,
            device=like.device,
            dtype=like.dtype,
        )
