"""Video as a sequence of frames: what is seen in each, and how it moves."""

from collections.abc import Sequence

from zoo.plugin import Embedding, hookimpl
from zoo_video.clip import Clip


@hookimpl
def zoo_components() -> Sequence[type[Embedding]]:
    return [Clip]
