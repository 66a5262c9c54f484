"""Texts to token ids and back, by the tokenizers a model carries with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.errors import MissingExtra, ZooError

MAX_BYTES = 50_000_000


class Tokenizer:
    """A tokenizer of the `tokenizers` library, from its JSON."""

    def __init__(self, text: str, label: str = "this") -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ImportError:
            raise MissingExtra("a tokenizer", library="tokenizers", extra="text") from None
        try:
            self.backend: Any = Library.from_str(text)
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise ZooError(f"{label} is no tokenizer of the tokenizers library: {reason}") from None
        self.backend.no_padding()
        self.backend.no_truncation()

    @property
    def vocab_size(self) -> int:
        """How many symbols it knows."""
        return int(self.backend.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(found.ids) for found in self.backend.encode_batch(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """The text, without special symbols."""
        return str(self.backend.decode(list(ids)))


def read_tokenizer(path: str | os.PathLike[str]) -> str:
    """The JSON of a tokenizer file, checked to be one."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ZooError(f"{path} has more than the {MAX_BYTES:,} bytes of a tokenizer")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not UTF-8 text, so no tokenizer") from None
    Tokenizer(text, label=str(path))
    return text


def attach_tokenizers(model: Any, tokenizers: Mapping[str, str]) -> None:
    """Let a model carry tokenizers for 'source' and 'target'; refused if it lacks the symbols."""
    for side, text in tokenizers.items():
        vocab_size = model.vocab_size(side)
        size = Tokenizer(text).vocab_size
        if size > vocab_size:
            raise ZooError(
                f"the {side} tokenizer has {size:,} symbols, but the model only {vocab_size:,}"
            )
    model.tokenizer = dict(tokenizers)
