"""Preprocessors: text, labels, images and audio."""

from collections.abc import Sequence

from zoo.plugin import Preprocessor, hookimpl


@hookimpl
def zoo_components() -> Sequence[type[Preprocessor]]:
    return []
