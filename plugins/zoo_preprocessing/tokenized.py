"""Texts as token IDs: the tokenizer of a preprocessor, and the limits of its texts."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from zoo import DataError, ZooError
from zoo.plugin import Array, TensorSchema, Tokenizer, expand_path, truncate

EXAMPLE_WORDS = ("the", "cat", "sat", "on", "a", "mat")
EXAMPLE_TOKENIZER = """{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{"id": 0, "content": "<pad>", "single_word": false, "lstrip": false,
"rstrip": false, "normalized": false, "special": true}], "normalizer": null,
"pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
"model": {"type": "WordLevel", "vocab": {"<pad>": 0, "<unk>": 1, "the": 2, "cat": 3, "sat": 4,
"on": 5, "a": 6, "mat": 7, "[MASK]": 8}, "unk_token": "<unk>"}}"""


class TextEncoder:
    """Encodes texts as token IDs, without the start and end tokens that the model's schema adds.

    Args:
        tokenizer: path of the JSON of a tokenizer, or None if it is stored.
        stored: the JSON of the tokenizer, stored in a model.
        schema: schema of the token IDs.
        max_length: maximum number of tokens of a text.
        truncate: whether longer texts are cut; otherwise they raise DataError.
        lowercase: convert texts to lower case.
    """

    def __init__(
        self,
        tokenizer: str | None,
        stored: str | None,
        schema: TensorSchema,
        *,
        max_length: int | None,
        truncate: bool,
        lowercase: bool,
    ) -> None:
        self.path = tokenizer
        self.json = stored
        self.schema = schema
        self.max_length = max_length
        self.truncate = truncate
        self.lowercase = lowercase

    def stored(self) -> str:
        """Return the JSON of the tokenizer, read from its file at the first call."""
        if self.json is None:
            if self.path is None:
                raise ZooError(
                    "the text preprocessor has no tokenizer; make one with: zoo tokenizer train "
                    "FILE -o tokenizer.json --for SPEC, and set 'tokenizer' to its path"
                )
            path = expand_path(self.path)
            if not path.exists():
                raise DataError(
                    "the tokenizer file does not exist; make it with: "
                    f"zoo tokenizer train FILE -o {self.path} --for SPEC",
                    str(path),
                )
            self.json = Tokenizer.read_json(path)
        return self.json

    @cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer(self.stored(), self.path or "tokenizer", literal=True)
        vocab = self.schema.below
        if isinstance(vocab, int) and tokenizer.vocab_size > vocab:
            raise ZooError(
                f"the tokenizer has {tokenizer.vocab_size:,} tokens, but the model's vocabulary "
                f"has {vocab:,}; use a tokenizer with the same vocabulary, or set vocab in the spec"
            )
        return tokenizer

    @cached_property
    def reserved(self) -> dict[int, str]:
        """Padding, start and end tokens, by ID, as far as the tokenizer has them."""
        used = {self.schema.pad, *self.schema.prefix, *self.schema.suffix}
        return {i: token for i, token in self.tokenizer.special_ids().items() if i in used}

    def encode(self, texts: Sequence[str]) -> list[Array]:
        """Return the token IDs [S] of each text."""
        for text in texts:
            if not isinstance(text, str):
                raise DataError(f"expected a text, found {truncate(repr(text), 80)}")
        lowered = [text.lower() for text in texts] if self.lowercase else texts
        if self.truncate and self.max_length is not None:
            # Start or end tokens that the tokenizer adds are removed, so one more may be needed.
            length = self.max_length + len(self.schema.prefix) + len(self.schema.suffix)
            lowered = [self.tokenizer.start_of(text, length) for text in lowered]
        rows = self.tokenizer.encode_plain(lowered, self.schema)
        return [self._check(row, text) for row, text in zip(rows, texts, strict=True)]

    def _check(self, ids: list[int], text: str) -> Array:
        shown = truncate(repr(text), 80)
        if self.max_length is not None and len(ids) > self.max_length:
            if not self.truncate:
                raise DataError(
                    f"the text {shown} has {len(ids)} tokens, more than max_length "
                    f"{self.max_length}; set truncate: true to cut it"
                )
            ids = self.tokenizer.shorten(ids, self.max_length)
        for token in self.reserved.keys() & set(ids):
            raise DataError(
                f"the text {shown} contains '{self.reserved[token]}', which the model uses as a "
                "padding, start or end token"
            )
        return np.array(ids, dtype=np.int64)
