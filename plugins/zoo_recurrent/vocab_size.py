"""Vocabulary size of a decoder's embedding."""

from zoo import ZooError
from zoo.plugin import Embedding


def vocab_size(embedding: Embedding) -> int:
    """Return the vocabulary size, or raise ZooError if the embedding has no vocabulary."""
    if embedding.vocab is None:
        raise ZooError(
            f"embedding '{embedding.name}' is not a token embedding and has no vocabulary"
        )
    return embedding.vocab
