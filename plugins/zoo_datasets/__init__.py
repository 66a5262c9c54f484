"""Datasets: text, tables, images, audio, graphs and stories."""

from collections.abc import Sequence

from zoo.plugin import Dataset, hookimpl


@hookimpl
def zoo_components() -> Sequence[type[Dataset]]:
    return []
