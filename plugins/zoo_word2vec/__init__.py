"""word2vec: skip-gram and CBOW models, their training, and queries on word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zoo.command import Command
from zoo.plugin import hookimpl
from zoo_word2vec.vectors import Vectors as Vectors, vectors_from_model as vectors_from_model

if TYPE_CHECKING:
    from zoo.plugin import Component


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    # Imported here, so that the command `zoo vectors` does not import torch.
    from zoo_word2vec.cbow import Cbow
    from zoo_word2vec.negative_sampling import NegativeSampling
    from zoo_word2vec.similarity_program import SimilarityProgram
    from zoo_word2vec.skip_gram import SkipGram

    return [SkipGram, Cbow, NegativeSampling, SimilarityProgram]


@hookimpl
def zoo_commands() -> Sequence[Command]:
    return [
        Command(
            "vectors",
            "zoo_word2vec.vectors_command:command",
            "Query word vectors for neighbours, similarities and analogies, or convert them.",
            example="zoo vectors glove.6B.100d.txt man king woman",
        )
    ]
