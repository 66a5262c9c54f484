"""Preprocessors: text, labels, images and audio."""

from collections.abc import Sequence

from zoo.plugin import Preprocessor, hookimpl
from zoo_preprocessing.audio import Audio
from zoo_preprocessing.image import Image
from zoo_preprocessing.label import Label
from zoo_preprocessing.labels import Labels
from zoo_preprocessing.masked_text import MaskedText
from zoo_preprocessing.split_text import SplitText
from zoo_preprocessing.text import Text
from zoo_preprocessing.text_list import TextList
from zoo_preprocessing.text_pair import TextPair
from zoo_preprocessing.words import Words


@hookimpl
def zoo_components() -> Sequence[type[Preprocessor]]:
    return [Text, TextPair, Words, TextList, MaskedText, SplitText, Label, Labels, Image, Audio]
