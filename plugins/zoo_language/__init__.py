"""Causal, masked and bidirectional language models, encoders of features and sentences."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_language.bilm import BiLM
from zoo_language.character_cnn import CharacterCNN
from zoo_language.count_model import CountModelProgram
from zoo_language.elmo_encoder import ElmoEncoder
from zoo_language.elmo_model import ElmoModel
from zoo_language.features import Features
from zoo_language.language_model import LanguageModel
from zoo_language.masked_lm import MaskedLM
from zoo_language.ngram import NGram
from zoo_language.sentence_encoder import SentenceEncoder


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [
        LanguageModel,
        MaskedLM,
        Features,
        BiLM,
        ElmoModel,
        ElmoEncoder,
        CharacterCNN,
        SentenceEncoder,
        NGram,
        CountModelProgram,
    ]
