"""Datasets: text, tables, images, audio, graphs and stories."""

from collections.abc import Sequence

from zoo.plugin import Dataset, hookimpl
from zoo_datasets.arrays import Arrays
from zoo_datasets.audio import AudioFolder
from zoo_datasets.captions import Captions
from zoo_datasets.conll import Conll
from zoo_datasets.csv import Csv
from zoo_datasets.delta_audio import DeltaAudio
from zoo_datasets.graph import GraphDataset
from zoo_datasets.hf_datasets import HfDatasets
from zoo_datasets.idx import Idx
from zoo_datasets.image_folder import ImageFolder
from zoo_datasets.joined import Joined
from zoo_datasets.json_lines import JsonLines
from zoo_datasets.parallel_text import ParallelText
from zoo_datasets.plain_text import PlainText
from zoo_datasets.scenes import Scenes
from zoo_datasets.split import Split
from zoo_datasets.stories import Stories
from zoo_datasets.text_spans import TextSpans


@hookimpl
def zoo_components() -> Sequence[type[Dataset]]:
    return [
        ParallelText,
        PlainText,
        JsonLines,
        Csv,
        Conll,
        TextSpans,
        ImageFolder,
        Idx,
        Captions,
        Scenes,
        AudioFolder,
        DeltaAudio,
        Joined,
        Arrays,
        GraphDataset,
        Stories,
        HfDatasets,
        Split,
    ]
