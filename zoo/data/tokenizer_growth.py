"""How much a tokenizer can lengthen a text, so that texts are not expanded without bound.

The library allocates memory for the result without a limit, and ends the process if there is none.
So the growth is computed from the parts of a tokenizer, and measured in pieces where it is high.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zoo.errors import ZooError

MAX_GROWTH = 100_000
"""Characters that a character of a text may become."""
MAX_ADDED = 1_000
MAX_COPIES = 10
"""Tokens that a post-processor may add, and how often it may repeat a text."""
MAX_SMALL = 2**20
MAX_RATIO = 8
"""Texts of more characters than `MAX_SMALL` become at most this many times longer."""
MAX_TOKEN = 256
"""Characters of decoded text per token, if they are more than `MAX_SMALL`."""
_CHARACTERS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "BertNormalizer": 12, "StripAccents": 1}
"""Characters that a part makes of one Unicode character at most; 4 for other parts."""


class Growth:
    """The growth of texts in a tokenizer.

    Args:
        backend: the tokenizer of the library.
        label: its name in error messages.

    Raises:
        ZooError: if a text could grow beyond the limits.
    """

    def __init__(self, backend: Any, label: str) -> None:
        self.encoding = _growth(_settings(backend.normalizer))
        self.decoding = _growth(_settings(backend.decoder))
        copies, added = _template(_settings(backend.post_processor))
        if max(self.encoding, self.decoding) > MAX_GROWTH:
            longest = max(self.encoding, self.decoding)
            raise ZooError(
                f"{label} can replace one character by {longest:,}; at most {MAX_GROWTH:,} are "
                "allowed"
            )
        if added > MAX_ADDED or copies > MAX_COPIES:
            raise ZooError(
                f"{label} adds {added:,} tokens to a text and repeats it {copies:,} times; at most "
                f"{MAX_ADDED:,} and {MAX_COPIES} are allowed"
            )

    def check_texts(self, backend: Any, texts: Sequence[str]) -> None:
        """Raise ZooError if the texts become too long when they are encoded."""
        size = sum(map(len, texts))
        limit = max(MAX_SMALL, MAX_RATIO * size)
        if (size + len(texts)) * self.encoding <= limit or backend.normalizer is None:
            return
        length = 0
        for piece in _pieces(texts, max(1, MAX_SMALL // self.encoding)):
            length += len(backend.normalizer.normalize_str(piece))
            if length > limit:
                raise ZooError(
                    f"the tokenizer makes more than {limit:,} characters of texts with {size:,}"
                )

    def check_tokens(self, backend: Any, ids: Sequence[int]) -> None:
        """Raise ZooError if the tokens become too long when they are decoded."""
        limit = max(MAX_SMALL, MAX_TOKEN * len(ids))
        length = sum(len(backend.id_to_token(token) or "") for token in ids) * self.decoding
        if length > limit:
            raise ZooError(
                f"the tokenizer makes up to {length:,} characters of {len(ids):,} tokens; at most "
                f"{limit:,} are allowed"
            )


def _pieces(texts: Sequence[str], size: int) -> Iterator[str]:
    for text in texts:
        for start in range(0, max(len(text), 1), size):
            yield text[start : start + size]


def _settings(part: Any) -> dict[str, Any]:
    """Return the JSON of a part of a tokenizer."""
    found: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return found


def _growth(part: Mapping[str, Any]) -> int:
    """Return the largest number of characters that a normaliser or decoder makes of one."""
    kind = part.get("type")
    if kind == "Sequence":
        growth = 1
        for inner in part.get("normalizers") or part.get("decoders") or ():
            growth *= _growth(inner)
        return growth
    if kind == "Replace":
        content, pattern = len(part.get("content") or ""), part.get("pattern")
        text = pattern.get("String") if isinstance(pattern, dict) else None
        return -(-max(content, 1) // len(text)) if text else 1 + content
    if kind == "Prepend":
        return 1 + len(part.get("prepend") or "")
    if kind == "Precompiled":
        return _precompiled(part.get("precompiled_charsmap") or "")
    return _CHARACTERS.get(kind, 4) if kind else 1


def _precompiled(text: str) -> int:
    """Return the longest replacement in a character map of SentencePiece: its size, a trie, and
    the replacements, each with a zero byte at the end."""
    content = base64.b64decode(text)
    replacements = content[4 + int.from_bytes(content[:4], "little") :]
    return max(len(each) for each in replacements.split(b"\0")) or 1


def _template(part: Mapping[str, Any]) -> tuple[int, int]:
    """Return how often a post-processor repeats a text, and how many tokens it adds."""
    copies, added = 1, 0
    for inner in part.get("processors") or ():
        more, tokens = _template(inner)
        copies, added = copies * more, added * more + tokens
    if part.get("type") == "TemplateProcessing":
        pieces, special = part["single"], part["special_tokens"]
        copies = sum("Sequence" in piece for piece in pieces)
        names = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
        added = sum(len(special[name]["ids"]) for name in names if name in special)
    return copies, added
