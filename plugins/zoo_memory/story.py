"""Batches of question answering: facts, a question and its answer."""

import torch
from torch import Tensor

from zoo import Batch, Outputs, ZooError
from zoo.plugin import BatchSchema, Embedding

WORDS_PER_SENTENCE = 4
"""Words per sentence in `random_story`."""


def story_schema(source: Embedding, *, inference: bool) -> BatchSchema:
    """Return the schema of a batch of N sentences, a question and its answer."""
    words = source.input_schema()
    return {
        "story": words.with_dims("B", "N", "W"),
        "question": words.with_dims("B", "Q"),
        "target": words.with_dims("B")._replace(optional=inference),
    }


def validate_story(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the story [B, N, W] and the question [B, Q]; raise ZooError if one is empty."""
    story, question = batch["story"], batch["question"]
    if 0 in (*story.shape[1:], question.shape[1]):
        raise ZooError(
            f"story is {list(story.shape)} and question {list(question.shape)}, but neither may "
            "be empty; use padding tokens for an empty story"
        )
    return story, question


def require_vocab(source: Embedding) -> int:
    """Return the vocabulary size, or raise ZooError if the embedding has no vocabulary."""
    if source.vocab is None:
        raise ZooError(f"embedding '{source.name}' is not a token embedding and has no vocabulary")
    return source.vocab


def answer_outputs(logits: Tensor, batch: Batch) -> Outputs:
    """Return the outputs for logits [B, V] and the targets [B] of the batch."""
    targets = batch["target"][:, None]
    return Outputs(logits[:, None], targets, torch.ones_like(targets, dtype=torch.bool))


def random_story(
    source: Embedding, batch: int, length: int, generator: torch.Generator | None
) -> dict[str, Tensor]:
    """Return a batch of random stories with ``length`` sentences."""
    words = length * WORDS_PER_SENTENCE
    tokens = source.example(batch, words + WORDS_PER_SENTENCE + 1, generator)
    return {
        "story": tokens[:, :words].reshape(batch, length, WORDS_PER_SENTENCE),
        "question": tokens[:, words:-1],
        "target": tokens[:, -1],
    }
