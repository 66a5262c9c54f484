"""Preprocessor 'text-list': several texts as token IDs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema, truncate as shorten
from zoo_preprocessing.text import token_schema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder


class TextList(Preprocessor):
    r"""Token IDs of several texts, such as the sentences of a story, padded to equal length.

    .. math:: x = (x_{ij}), \quad x_{ij} \in \{0, \dots, V - 1\}, \quad i \le N, \quad j \le W

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        max_length: maximum number of tokens of a text.
        max_texts: maximum number of texts; of more, the last ones are used.
        truncate: cut longer texts; by default they raise DataError.
        lowercase: convert texts to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        N texts of up to W tokens -> [N, W]; W is that of the longest text, or of the schema.
    """

    name: ClassVar[str] = "text-list"
    paper: ClassVar[str] = (
        "Sukhbaatar et al. 2015, End-to-end memory networks. https://arxiv.org/abs/1503.08895"
    )
    content: ClassVar[Any] = "texts"

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        max_length: Annotated[int, Field(ge=1)] | None = None,
        max_texts: Annotated[int, Field(ge=1)] | None = None,
        truncate: bool = False,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.schema = schema
        self.max_texts = max_texts
        self.encoder = TextEncoder(
            tokenizer,
            stored,
            schema,
            max_length=max_length,
            truncate=truncate,
            lowercase=lowercase,
        )

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        return {key: token_schema(self.schema, self.name, ("[B, N, W]",), (3,))}

    def stored(self) -> str:
        return self.encoder.stored()

    def encode(self, value: Any) -> Array:
        return self.encode_many([value])[0]

    def encode_many(self, values: Sequence[Any]) -> list[Array]:
        lists = [self._select(value) for value in values]
        texts = list(dict.fromkeys(text for texts in lists for text in texts))
        rows = dict(zip(texts, self.encoder.encode(texts), strict=True))
        return [self._pad([rows[text] for text in texts]) for texts in lists]

    def _select(self, value: Any) -> Sequence[str]:
        """Return the texts to encode, or raise DataError."""
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise DataError(f"expected a list of texts, found {shorten(repr(value), 80)}")
        if not value:
            raise DataError("the list of texts is empty")
        for text in value:
            if not isinstance(text, str):
                raise DataError(f"expected a text, found {shorten(repr(text), 80)}")
        return value[-self.max_texts :] if self.max_texts else value

    def _pad(self, rows: Sequence[Array]) -> Array:
        """Return the token IDs of the texts of an example, padded to equal length."""
        width = (self.schema.dims or ("W",))[-1]
        longest = max(len(row) for row in rows)
        if isinstance(width, int):
            if longest > width:
                raise DataError(f"a text has {longest} tokens, but the model takes {width}")
            longest = width
        padded = np.full((len(rows), longest), self.schema.pad, dtype=np.int64)
        for row, ids in zip(padded, rows, strict=True):
            row[: len(ids)] = ids
        return padded

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    def example(self, rng: np.random.Generator) -> list[str]:
        count = int(rng.integers(1, 4))
        return [" ".join(rng.choice(EXAMPLE_WORDS, rng.integers(1, 6))) for _ in range(count)]

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "N", "W"), "integer", below=9)

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER
