"""Waveform embedding of wav2vec 2.0."""

from collections.abc import Sequence

from zoo.plugin import Embedding, hookimpl
from zoo_wave.waveform import Waveform


@hookimpl
def zoo_components() -> Sequence[type[Embedding]]:
    return [Waveform]
