"""Preprocessor 'text-pair': two texts as one sequence of token IDs."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError, ZooError
from zoo.plugin import (
    Array,
    FromParent,
    Preprocessor,
    TensorSchema,
    Tokenizer,
    suggest,
    truncate as shorten,
)
from zoo_preprocessing.text import token_schema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder

SEGMENTS = 2


class TextPair(Preprocessor):
    r"""Token IDs of two texts, one after the other, with the segment of each token.

    .. math:: x = (a_1, \dots, a_n, b_1, \dots, b_m), \quad s_i = 0 \text{ in } a, 1 \text{ in } b

    The tokenizer adds its own tokens, such as [CLS] a [SEP] b [SEP] of BERT. If the embedding has
    two segments, the segment of each token is the second channel; otherwise the tokenizer must add
    tokens between the texts, or ``separator`` is set. A text of a pair may also be one string, with
    a tab between the texts.

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        separator: token that is put between the texts, of a tokenizer that adds none.
        max_length: maximum number of tokens of both texts, with the tokens between them.
        truncate: cut the longer text of longer pairs; by default they raise DataError.
        lowercase: convert texts to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        two texts -> [S], or [S, 2] with the segments.
    """

    name: ClassVar[str] = "text-pair"
    paper: ClassVar[str] = (
        "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers for language "
        "understanding, section 3. https://arxiv.org/abs/1810.04805"
    )
    content: ClassVar[Any] = "texts"
    test_params: ClassVar[Mapping[str, Any]] = {"separator": "[MASK]"}

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        separator: str | None = None,
        max_length: Annotated[int, Field(ge=3)] | None = None,
        truncate: bool = False,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.separator = separator
        self.max_length = max_length
        self.truncate = truncate
        self.lowercase = lowercase
        self.schema = schema
        self.encoder = TextEncoder(
            tokenizer, stored, schema, max_length=None, truncate=False, lowercase=False
        )
        channels = schema.channels or ()
        self.has_segments = len(channels) > 1 and (channels[1] or 0) >= SEGMENTS

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        made = token_schema(self.schema, self.name, ("[B, S]",), (2,))
        dims = ("B", "S", SEGMENTS) if self.has_segments else ("B", "S")
        return {key: made._replace(dims=dims)}

    def stored(self) -> str:
        return self.encoder.stored()

    def encode(self, value: Any) -> Array:
        return self.encode_many([value])[0]

    def encode_many(self, values: Sequence[Any]) -> list[Array]:
        pairs = [self._to_pair(value) for value in values]
        encoded = self._encode(pairs)
        return [self._to_array(*each, pair) for each, pair in zip(encoded, pairs, strict=True)]

    def _to_pair(self, value: Any) -> tuple[str, str]:
        texts = value.split("\t") if isinstance(value, str) else value
        is_list = isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
        if not is_list or len(texts) != 2:
            raise DataError(
                f"expected two texts, found {shorten(repr(value), 80)}; in one string, a tab "
                "separates them"
            )
        first, second = (text.lower() if self.lowercase else text for text in texts)
        return first, second

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Return the token IDs and the segments of pairs, with the tokens between the texts."""
        if self.separator is None:
            return self._tokenizer.encode_pairs(pairs)
        found = []
        for pair in pairs:
            first, second = self._tokenizer.encode(pair)
            if self.truncate and self.max_length is not None:
                first, second = _cut_longer(first, second, self.max_length - 1)
            segments = [0] * (len(first) + 1) + [1] * len(second)
            found.append(([*first, self._separator_id, *second], segments))
        return found

    def _to_array(self, ids: list[int], segments: list[int], pair: tuple[str, str]) -> Array:
        if self.max_length is not None and len(ids) > self.max_length:
            raise DataError(
                f"the pair {shorten(repr(pair), 80)} has {len(ids)} tokens, more than max_length "
                f"{self.max_length}; set truncate: true to cut it"
            )
        if not self.has_segments:
            return np.array(ids, dtype=np.int64)
        return np.array([ids, segments], dtype=np.int64).T  # [S, 2]

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = self.encoder.tokenizer
        adds_tokens = json.loads(self.stored()).get("post_processor") is not None
        if not (self.separator or adds_tokens or self.has_segments):
            raise ZooError(
                "the tokenizer adds no tokens between the two texts, and the embedding has no "
                "segments; set separator, or 'segments: 2' in the embedding of the model"
            )
        if self.truncate and self.max_length is not None and self.separator is None:
            tokenizer.backend.enable_truncation(self.max_length, strategy="longest_first")
        return tokenizer

    @cached_property
    def _separator_id(self) -> int:
        found = self._tokenizer.backend.token_to_id(self.separator)
        if found is None:
            special = suggest(str(self.separator), self._tokenizer.special_ids().values())
            raise ZooError(f"the tokenizer has no token '{self.separator}'{special}")
        return int(found)

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    def example(self, rng: np.random.Generator) -> list[str]:
        return [" ".join(rng.choice(EXAMPLE_WORDS, rng.integers(1, 6))) for _ in range(2)]

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=9, channels=(9, 2))

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER


def _cut_longer(first: list[int], second: list[int], length: int) -> tuple[list[int], list[int]]:
    """Return both lists with at most ``length`` items together; the longer one is cut first."""
    excess = len(first) + len(second) - length
    if excess <= 0:
        return first, second
    shorter = min(len(first), len(second), length // 2)
    if len(first) > len(second):
        return first[: length - shorter], second[:shorter]
    return first[:shorter], second[: length - shorter]
