"""Preprocessor 'masked-text': token IDs with random masks, for masked language models."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema, suggest
from zoo_preprocessing.text import token_schema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder

MASKED, RANDOM = 0.8, 0.1


class MaskedText(Preprocessor):
    r"""Token IDs of a text, of which some are replaced: the batch of a masked language model.

    .. math:: x_i = \begin{cases} \text{[MASK]} & 80\,\% \\ \text{random token} & 10\,\% \\
        y_i & 10\,\% \end{cases} \quad \text{for selected positions, else } x_i = y_i

    Each position is selected with the probability ``rate``, except special tokens; at least one is
    selected. The loss is computed at the selected positions.

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        rate: probability that a position is selected.
        mask_token: the token that replaces selected tokens; part of the tokenizer's vocabulary.
        max_length: maximum number of tokens of a text.
        truncate: cut longer texts; by default they raise DataError.
        lowercase: convert texts to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        a text -> source [S], target [S], loss_mask [S].
    """

    name: ClassVar[str] = "masked-text"
    paper: ClassVar[str] = (
        "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers for language "
        "understanding, section 3.1. https://arxiv.org/abs/1810.04805"
    )
    content: ClassVar[Any] = "text"

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        rate: Annotated[float, Field(gt=0, le=1)] = 0.15,
        mask_token: str = "[MASK]",
        max_length: Annotated[int, Field(ge=1)] | None = None,
        truncate: bool = False,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.rate = rate
        self.mask_token = mask_token
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
        if key != "source":
            raise ZooError(
                f"preprocessor 'masked-text' makes source, target and loss_mask from the key "
                f"'source', but it is at '{key}'"
            )
        source = token_schema(self.schema, self.name, ("[B, S]",), (2,))
        dims = ("B", "S")
        return {
            "source": source,
            "target": source,
            "loss_mask": TensorSchema(dims, "bool", optional=True, pad=False),
        }

    def stored(self) -> str:
        return self.encoder.stored()

    def encode(self, value: Any) -> Array:
        return self.encode_many([value])[0]

    def encode_many(self, values: Sequence[Any]) -> list[Array]:
        return self.encoder.encode(values)

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        special = np.array(sorted(self.encoder.tokenizer.special_ids()), dtype=np.int64)
        candidates = np.flatnonzero(~np.isin(array, special))
        selected = np.zeros(len(array), dtype=bool)
        if len(candidates):
            chosen = rng.random(len(candidates)) < self.rate
            chosen[rng.integers(len(candidates))] |= not chosen.any()
            selected[candidates[chosen]] = True
        action = rng.random(len(array))
        random_tokens = rng.choice(self._ordinary, len(array))
        source = np.where(selected & (action < MASKED), self._mask_id, array)
        is_random = selected & (action >= MASKED) & (action < MASKED + RANDOM)
        source = np.where(is_random, random_tokens, source)
        return {"source": source, "target": array, "loss_mask": selected}

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    @cached_property
    def _mask_id(self) -> int:
        tokenizer = self.encoder.tokenizer
        found = tokenizer.backend.token_to_id(self.mask_token)
        if found is None:
            special = suggest(self.mask_token, tokenizer.special_ids().values())
            raise ZooError(
                f"the tokenizer has no token '{self.mask_token}'{special}; set mask_token, or make "
                "a tokenizer with: zoo tokenizer train --special pad,unk,mask"
            )
        return int(found)

    @cached_property
    def _ordinary(self) -> Array:
        """IDs of the tokens that may replace a token."""
        excluded = {self._mask_id, *self.encoder.tokenizer.special_ids()}
        ids = [i for i in range(self.encoder.tokenizer.vocab_size) if i not in excluded]
        return np.array(ids, dtype=np.int64)

    def example(self, rng: np.random.Generator) -> str:
        return " ".join(rng.choice(EXAMPLE_WORDS, rng.integers(1, 6)))

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=9)

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER
