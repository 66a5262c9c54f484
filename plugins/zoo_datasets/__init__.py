"""Datasets: text, tables, images, audio, graphs and stories."""

from collections.abc import Sequence

from zoo.plugin import Dataset, hookimpl
from zoo_datasets.image_folder import ImageFolder
from zoo_datasets.parallel_text import ParallelText
from zoo_datasets.plain_text import PlainText


@hookimpl
def zoo_components() -> Sequence[type[Dataset]]:
    return [ParallelText, PlainText, ImageFolder]
