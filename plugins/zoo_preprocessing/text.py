"""Preprocessor 'text': a text as token IDs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError, ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder


class Text(Preprocessor):
    r"""Token IDs of a text, by a tokenizer of the tokenizers library.

    .. math:: x = (x_1, \dots, x_S), \quad x_i \in \{0, \dots, V - 1\}

    If the model takes one class for each item ([B]), the text must be one token, for example an
    answer of one word. Start and end tokens are added by the model's schema.

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        max_length: maximum number of tokens of a text.
        truncate: cut longer texts; by default they raise DataError.
        lowercase: convert texts to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        a text -> [S], or [] if the schema is [B].
    """

    name: ClassVar[str] = "text"
    paper: ClassVar[str] = (
        "Sennrich, Haddow and Birch 2016, Neural machine translation of rare words with subword "
        "units. https://arxiv.org/abs/1508.07909"
    )
    content: ClassVar[Any] = "text"

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        max_length: Annotated[int, Field(ge=1)] | None = None,
        truncate: bool = False,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.schema = schema
        self.encoder = TextEncoder(
            tokenizer,
            stored,
            schema,
            max_length=max_length,
            truncate=truncate,
            lowercase=lowercase,
        )

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        return {key: token_schema(self.schema, self.name, ("[B]", "[B, S]"), (1, 2))}

    def stored(self) -> str:
        return self.encoder.stored()

    def encode(self, value: Any) -> Array:
        return self.encode_many([value])[0]

    def encode_many(self, values: Sequence[Any]) -> list[Array]:
        rows = self.encoder.encode(values)
        return rows if self._is_sequence() else [self._only_token(row) for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    def position_names(self, value: Any) -> list[str]:
        added = self.encoder.tokenizer.added_ids
        tokens = (token for token in self.encode(value).ravel().tolist() if token not in added)
        return [self.decode([token]) for token in tokens]

    def _is_sequence(self) -> bool:
        return self.schema.dims is None or len(self.schema.dims) > 1

    def _only_token(self, row: Array) -> Array:
        if len(row) != 1:
            text = self.decode(row.tolist())
            raise DataError(
                f"the text '{text}' has {len(row)} tokens, but the model takes one token for each "
                "item; use a tokenizer of whole words (zoo tokenizer train --type words)"
            )
        return np.array(row[0])

    def example(self, rng: np.random.Generator) -> str:
        length = int(rng.integers(1, 6)) if self._is_sequence() else 1
        return " ".join(rng.choice(EXAMPLE_WORDS, length))

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=9)

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER


def token_schema(
    schema: TensorSchema, name: str, shapes: Sequence[str], ranks: Sequence[int]
) -> TensorSchema:
    """Return the schema of token IDs; raise ZooError if the model does not take them."""
    dims = schema.dims
    valid = schema.dtype in ("integer", "number") and not isinstance(schema.below, str)
    if dims is not None:
        valid = valid and len(dims) in ranks and schema.below is not None
    if not valid:
        raise ZooError(
            f"preprocessor '{name}' makes token IDs {' or '.join(shapes)}, but the model takes "
            f"{schema.dtype} {schema.format()}"
        )
    return schema._replace(channels=None, dtype="integer")
