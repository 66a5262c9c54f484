"""Word vectors: learned from text, and put to use."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Objective, hookimpl
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.negative_sampling import NegativeSampling
from zoo_word2vec.skip_gram import SkipGram


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Objective]]:
    return [SkipGram, Cbow, NegativeSampling]
