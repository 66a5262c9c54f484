"""Sound as it comes: waveforms to frames."""

from collections.abc import Sequence

from zoo.plugin import Embedding, hookimpl
from zoo_wave.waveform import Waveform


@hookimpl
def zoo_components() -> Sequence[type[Embedding]]:
    return [Waveform]
