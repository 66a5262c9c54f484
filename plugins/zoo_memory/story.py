"""Facts, a question about them, and its answer: what question-answering models read."""

import torch
from torch import Tensor

from zoo import Batch, Outputs, ZooError
from zoo.plugin import Embedding

WORDS_PER_SENTENCE = 4
"""Words in a sentence of an example."""


def validate_story(batch: Batch) -> tuple[Tensor, Tensor]:
    """The story [B, S, W] and the question [B, Q], or ZooError."""
    story, question = batch["story"], batch["question"]
    if story.dim() != 3 or question.dim() != 2 or len(story) != len(question):
        raise ZooError(
            "a story is [B, sentences, words] and its question [B, words], not "
            f"{list(story.shape)} and {list(question.shape)}"
        )
    if 0 in (*story.shape[1:], question.shape[1]):
        raise ZooError(
            "a story and its question need room for a word at least, not "
            f"{list(story.shape)} and {list(question.shape)}; padding where nothing is told"
        )
    return story, question


def require_vocab(source: Embedding) -> int:
    """How many words an answer may be."""
    if source.vocab is None:
        raise ZooError(f"embedding '{source.name}' has no vocabulary to answer from")
    return source.vocab


def answer_outputs(logits: Tensor, batch: Batch) -> Outputs:
    """logits [B, V] beside the answers [B]."""
    targets = batch["target"][:, None]
    return Outputs(logits[:, None], targets, torch.ones_like(targets, dtype=torch.bool))


def example(
    source: Embedding, batch: int, length: int, generator: torch.Generator | None
) -> dict[str, Tensor]:
    """A batch of random stories of ``length`` sentences."""
    tokens = source.example(batch, length * WORDS_PER_SENTENCE + WORDS_PER_SENTENCE + 1, generator)
    return {
        "story": tokens[:, : length * WORDS_PER_SENTENCE].reshape(
            batch, length, WORDS_PER_SENTENCE
        ),
        "question": tokens[:, length * WORDS_PER_SENTENCE : -1],
        "target": tokens[:, -1],
    }
