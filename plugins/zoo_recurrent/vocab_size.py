"""What a decoder asks of the embedding it speaks through."""

from zoo import ZooError
from zoo.plugin import Embedding


def vocabulary(embedding: Embedding) -> int:
    """How many symbols a decoder chooses from; an embedding of continuous inputs has none."""
    if embedding.vocab is None:
        raise ZooError(f"embedding '{embedding.name}' has no vocabulary to predict")
    return embedding.vocab
