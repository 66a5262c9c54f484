"""The start of a long text whose tokens are the first tokens of the whole text.

A text of which the first tokens are used need not be tokenized as a whole. It can end before a
space that follows a letter or digit: pre-tokenizers that split there make the same words of the
start as of the whole text, and tokens are parts of words. This is known for the parts of tokenizers
listed here; other tokenizers get the whole text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_CHARACTERS_PER_TOKEN = 16
_NORMALIZERS = {
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Precompiled",
    "Prepend",
    "Strip",
    "StripAccents",
}
_DROP_SPACES = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_LOCAL = {"Digits", "Punctuation"}
_CONTRACTIONS = (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    "'(?i:[sdmt]|ll|ve|re)",
    "(?i:[sdmt]|ll|ve|re)",
)
_WORDS = tuple(
    rf"|[^\r\n\p{{L}}\p{{N}}]?{plus}\p{{L}}+|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+{plus}[\r\n]*"
    rf"|\s*[\r\n]+|\s+(?!\S)|\s+"
    for plus in ("", "+")
    for digits in ("", "{1,3}")
)
_PATTERNS = {
    r"[\s\S]",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    *(first + words for first in _CONTRACTIONS for words in _WORDS),
}
"""Of characters, and of GPT-2, GPT-4, Llama 3 and Qwen 2: no match contains a space after a
letter or digit, and no match before such a space depends on what follows it."""


class TextStart:
    """The starts of texts for a tokenizer.

    Args:
        backend: the tokenizer of the library.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        settings = {
            name: None if part is None else json.loads(part.__getstate__())
            for name, part in (
                ("normalizer", backend.normalizer),
                ("pre_tokenizer", backend.pre_tokenizer),
            )
        }
        added = backend.get_added_tokens_decoder().values()
        self.is_known = (
            _is_kept(settings["normalizer"], settings["pre_tokenizer"])
            and _splits(settings["pre_tokenizer"])
            and not any(" " in token.content for token in added)
            and not getattr(backend.model, "dropout", None)
        )

    def of(self, text: str, count: int) -> str:
        """Return the start of a text that has more than `count` tokens, those of the whole text;
        or the text, if it is not longer or the tokenizer is not known."""
        length = _CHARACTERS_PER_TOKEN * (count + 1)
        while self.is_known and length < len(text):
            end = _space(text, length)
            start = text[:end]
            if end and len(self._backend.encode(start, add_special_tokens=False).ids) > count:
                return start
            length *= 4
        return text


def _space(text: str, end: int) -> int:
    """Return the position of the last space before `end` that follows a letter or digit; 0 if there
    is none."""
    while (end := text.rfind(" ", 0, end)) > 0:
        if text[end - 1].isalnum():
            return end
    return 0


def _is_kept(part: Mapping[str, Any] | None, pre_tokenizer: Mapping[str, Any] | None) -> bool:
    """Return whether a normalizer changes the text before a space in the same way without what
    follows, and keeps the space."""
    if part is None:
        return True
    if part["type"] == "Sequence":
        return all(_is_kept(each, pre_tokenizer) for each in part["normalizers"])
    if part["type"] == "BertNormalizer":  # adds spaces after Chinese characters
        return pre_tokenizer is not None and pre_tokenizer["type"] in _DROP_SPACES
    return part["type"] in _NORMALIZERS


def _splits(part: Mapping[str, Any] | None) -> bool:
    """Return whether a pre-tokenizer splits the text before each space that follows a character."""
    if part is None:
        return False
    if part["type"] == "Sequence":
        parts = part["pretokenizers"]
        return _splits(parts[0]) and all(_splits(each) or _is_local(each) for each in parts[1:])
    if part["type"] == "ByteLevel":
        return bool(part["use_regex"])
    if part["type"] == "Metaspace":
        return bool(part.get("split", True))
    if part["type"] == "Split":
        behavior = (part["behavior"], part["invert"])
        known = behavior in (("Isolated", False), ("Removed", True))
        return known and part["pattern"].get("Regex") in _PATTERNS
    return part["type"] in _DROP_SPACES


def _is_local(part: Mapping[str, Any]) -> bool:
    return part["type"] in _LOCAL or (part["type"] == "ByteLevel" and not part["use_regex"])
