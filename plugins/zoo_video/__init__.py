"""Embedding of video clips."""

from collections.abc import Sequence

from zoo.plugin import Embedding, hookimpl
from zoo_video.clip import Clip


@hookimpl
def zoo_components() -> Sequence[type[Embedding]]:
    return [Clip]
