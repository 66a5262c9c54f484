"""Preprocessor 'audio': a waveform."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError, ZooError
from zoo.plugin import Array, Audio as Waveform, FromParent, Preprocessor, TensorSchema, read_audio
from zoo_preprocessing.resampling import resample as resample_wave


class Audio(Preprocessor):
    r"""Waveform at the sampling rate of the model.

    .. math:: x_l = \frac{a_l - \mu}{\sigma} \quad \text{if it is normalised, else } x_l = a_l

    Features such as log-mel spectrograms are computed by the model's embedding. Channels of a file
    are averaged.

    Args:
        rate: sampling rate of the model, in Hz.
        resample: convert audio of another rate; by default it raises DataError.
        min_seconds: shortest valid audio.
        max_seconds: longest valid audio.
        normalise: scale each waveform to mean 0 and standard deviation 1.
        schema: schema of the key in the model's batch.

    Shapes:
        Audio with samples [N] -> float32 [L], with L = N if the rate is the same.
    """

    name: ClassVar[str] = "audio"
    paper: ClassVar[str] = (
        "Baevski et al. 2020, wav2vec 2.0: a framework for self-supervised learning of speech "
        "representations, section 2. https://arxiv.org/abs/2006.11477"
    )
    content: ClassVar[Any] = "audio"
    test_params: ClassVar[Mapping[str, Any]] = {"rate": 8000}

    def __init__(
        self,
        *,
        rate: Annotated[int, Field(ge=1, le=1_000_000)],
        resample: bool = False,
        min_seconds: Annotated[float, Field(ge=0)] = 0.0,
        max_seconds: Annotated[float, Field(gt=0)] | None = None,
        normalise: bool = False,
        schema: FromParent[TensorSchema],
    ) -> None:
        if max_seconds is not None and max_seconds < min_seconds:
            raise ZooError(
                f"max_seconds ({max_seconds}) must not be less than min_seconds ({min_seconds})"
            )
        self.rate = rate
        self.resample = resample
        self.min_seconds = min_seconds
        self.max_seconds = max_seconds
        self.normalise = normalise
        self.schema = schema

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        dims = self.schema.dims
        any_length = dims is None or (len(dims) == 2 and isinstance(dims[1], str))
        if self.schema.dtype not in ("float", "number") or not any_length:
            raise ZooError(
                "preprocessor 'audio' makes waveforms, float [B, L], but the model takes "
                f"{self.schema.dtype} {self.schema.format()}"
            )
        return {key: self.schema._replace(dtype="float")}

    def encode(self, value: Any) -> Array:
        samples, rate = _to_waveform(value)
        if rate != self.rate:
            if not self.resample:
                raise DataError(
                    f"the audio has a sampling rate of {rate} Hz, but the model takes {self.rate} "
                    "Hz; set resample: true to convert it"
                )
            samples = resample_wave(samples.astype(np.float64), rate, self.rate)
        seconds = len(samples) / self.rate
        if not len(samples):
            raise DataError("the audio has no samples")
        if seconds < self.min_seconds:
            raise DataError(f"the audio has {seconds:.3g} s; the minimum is {self.min_seconds} s")
        if self.max_seconds is not None and seconds > self.max_seconds:
            raise DataError(f"the audio has {seconds:.3g} s; the maximum is {self.max_seconds} s")
        if self.normalise:
            samples = samples.astype(np.float64)
            samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
        return samples.astype(np.float32, copy=False)

    def read(self, path: Path) -> Waveform:
        return read_audio(path)

    def example(self, rng: np.random.Generator) -> Waveform:
        length = round(self.rate * (self.min_seconds + 0.01)) + int(rng.integers(1, 9))
        rate = self.rate * 2 if self.resample else self.rate
        return Waveform(rng.uniform(-1, 1, length * rate // self.rate).astype(np.float32), rate)

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "L"), "float")


def _to_waveform(value: Any) -> tuple[Array, int]:
    """Return samples [L] and the rate, or raise DataError."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise DataError(f"expected audio (samples, rate), found {type(value).__name__}")
    samples, rate = np.asarray(value[0]), value[1]
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise DataError(
            f"expected samples [L] as floats from -1 to 1, found {samples.dtype} "
            f"{list(samples.shape)}"
        )
    finite = np.isfinite(samples)
    if not finite.all():
        raise DataError(f"sample {int(finite.argmin())} of the audio is NaN or infinite")
    return samples, int(rate)
