"""Causal, masked and bidirectional language models, and sentence encoders."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Decoder, hookimpl
from zoo_language.bilm import BiLM
from zoo_language.language_model import LanguageModel
from zoo_language.masked_lm import MaskedLM
from zoo_language.ngram import NGram
from zoo_language.sentence_encoder import SentenceEncoder


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Decoder]]:
    return [LanguageModel, MaskedLM, BiLM, SentenceEncoder, NGram]
