"""Character IDs of words, as in the released ELMo models."""

from collections.abc import Sequence

import torch
from torch import Tensor

# Bytes have the IDs 1 to 256, so that 0 can mark padded positions.
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, WORD_PADDING = range(257, 262)


def character_ids(sentences: Sequence[Sequence[str]], length: int = 50) -> Tensor:
    """Return the IDs [B, S, length] of sentences of words, as inputs of `character-cnn`.

    A word is the bytes of its UTF-8 form between a start and an end ID, truncated to `length` and
    padded with a separate ID. Start and end of the sentence are added, each as a word of one ID;
    shorter sentences are padded with 0. There are 262 IDs.
    """
    longest = max((len(words) for words in sentences), default=0) + 2
    ids = torch.zeros(len(sentences), longest, length, dtype=torch.long)
    for row, words in zip(ids, sentences, strict=True):
        encoded = [[byte + 1 for byte in word.encode("utf-8")] for word in words]
        for position, word in zip(row, [[SENTENCE_START], *encoded, [SENTENCE_END]], strict=False):
            characters = [WORD_START, *word[: length - 2], WORD_END]
            position[:] = WORD_PADDING
            position[: len(characters)] = torch.tensor(characters)
    return ids
