"""Words of a text whose tokens are pieces of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from zoo.data.tokenizer import Tokenizer

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]+")
_INCOMPLETE = "\ufffd"
"""Decoded for the first bytes of a character."""


@dataclass(frozen=True)
class Word:
    """A word, or a group of punctuation marks, and the positions of its tokens."""

    text: str
    positions: list[int]


def split_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Word]:
    """Return the words of the decoded tokens. Each position belongs to one word.

    A token without text, such as an unknown token, belongs to the next word, or to the last one.
    """
    text = tokenizer.decode(ids)
    spans = [match.span() for match in _WORD.finditer(text)]
    if not spans:
        return [Word(text.strip() or "·", list(range(len(ids))))] if ids else []
    positions: list[list[int]] = [[] for _ in spans]
    word, start = 0, 0
    for position in range(len(ids)):
        while word < len(spans) - 1 and spans[word][1] <= start:
            word += 1
        positions[word].append(position)
        start = len(tokenizer.decode(ids[: position + 1]).rstrip(_INCOMPLETE))
    kept = [number for number, found in enumerate(positions) if found]
    ends = [*(spans[number][0] for number in kept[1:]), len(text)]
    return [
        Word(text[spans[number][0] : end].strip(), positions[number])
        for number, end in zip(kept, ends, strict=True)
    ]
