"""Preprocessor 'words': the words of a text as token IDs, and where each word starts and ends."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError, ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema, truncate as shorten
from zoo_preprocessing.text import token_schema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder

STARTS, ENDS = "starts", "ends"
WORD = re.compile(r"\w+|[^\w\s]")
"""How a text that is not divided into words is divided: words and single other characters."""


class Words(Preprocessor):
    r"""Token IDs of words, with the positions of the first and the last token of each word.

    .. math::
        x = (w_{11}, \dots, w_{1k_1}, w_{21}, \dots), \quad s_i = 1 + \sum_{j<i} k_j, \quad
        e_i = s_i + k_i - 1

    A model with ``words: true``, such as `tagger`, has one output for each word, at its first
    token, whatever the number of tokens of the word is. Tokens that the tokenizer adds, such as
    [CLS], belong to no word. A text instead of a list is divided into words and single other
    characters.

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        max_length: maximum number of tokens; longer lists of words raise DataError.
        lowercase: convert words to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        W words -> source [S], starts [W], ends [W].
    """

    name: ClassVar[str] = "words"
    paper: ClassVar[str] = (
        "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers for language "
        "understanding, section 5.3. https://arxiv.org/abs/1810.04805"
    )
    content: ClassVar[Any] = "texts"

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        max_length: Annotated[int, Field(ge=1)] | None = None,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.max_length = max_length
        self.lowercase = lowercase
        self.schema = schema
        self.encoder = TextEncoder(
            tokenizer, stored, schema, max_length=None, truncate=False, lowercase=False
        )

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        if key != "source":
            raise ZooError(
                f"preprocessor 'words' makes source and {STARTS} from the key 'source', but it is "
                f"at '{key}'"
            )
        source = token_schema(self.schema, self.name, ("[B, S]",), (2,))
        positions = TensorSchema(("B", "W"), "integer", below="S", minimum=None, pad=-1)
        return {key: source._replace(dims=("B", "S")), STARTS: positions, ENDS: positions}

    def stored(self) -> str:
        return self.encoder.stored()

    def encode(self, value: Any) -> Array:
        """Return the token IDs and, after -1, the positions of the first and of the last tokens."""
        words = self.position_names(value)
        ids, spans = self.encoder.tokenizer.encode_words(
            [word.lower() for word in words] if self.lowercase else words
        )
        missing = next((word for word, n in zip(words, spans, strict=True) if n is None), None)
        if missing is not None:
            raise DataError(f"the word {shorten(repr(missing), 80)} has no tokens")
        if self.max_length is not None and len(ids) > self.max_length:
            raise DataError(
                f"the {len(words)} words have {len(ids)} tokens, more than max_length "
                f"{self.max_length}; divide the text into sentences"
            )
        starts, ends = zip(*(span for span in spans if span is not None), strict=True)
        return np.array([*ids, -1, *starts, *ends], dtype=np.int64)

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        (end,) = np.flatnonzero(array == -1)
        starts, ends = array[end + 1 :].reshape(2, -1)
        return {key: array[:end], STARTS: starts, ENDS: ends}

    def position_names(self, value: Any) -> list[str]:
        words = WORD.findall(value) if isinstance(value, str) else value
        is_list = isinstance(words, Sequence) and all(isinstance(word, str) for word in words)
        if not is_list or not words:
            raise DataError(f"expected a list of words, found {shorten(repr(value), 80)}")
        return list(words)

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    def example(self, rng: np.random.Generator) -> list[str]:
        return [str(word) for word in rng.choice(EXAMPLE_WORDS, rng.integers(1, 6))]

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=9)

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER
