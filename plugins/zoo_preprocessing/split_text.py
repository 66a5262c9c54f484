"""Preprocessor 'split-text': token IDs of a text, some of which are split in training."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import ZooError
from zoo.plugin import Array, FromParent, TensorSchema
from zoo_preprocessing.text import Text

MAX_PARTS = 256
"""Tokens of which more than this many are made are not split further; merges may be circular."""
MAX_IDS = 2**24
EXAMPLE_PIECES = """{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{"id": 0, "content": "<pad>", "single_word": false, "lstrip": false,
"rstrip": false, "normalized": false, "special": true}], "normalizer": null,
"pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
"model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
"end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
"vocab": {"<pad>": 0, "<unk>": 1, "c": 2, "a": 3, "t": 4, "at": 5, "cat": 6},
"merges": [["a", "t"], ["c", "at"]]}}"""


class SplitText(Text):
    r"""Token IDs of a text; in training, tokens of a byte-pair encoding are split at random.

    .. math:: x \to \begin{cases} (a, b) & \text{with probability } p \\ x & \text{otherwise}
        \end{cases} \quad \text{if } x \text{ is the merge of } a \text{ and } b

    The two tokens are split again with the same probability, and so on. The model then learns from
    many encodings of each text. This undoes merges of the final encoding, while BPE-dropout leaves
    merges out of the encoding. Validation and generation use the encoding without splits, and
    ``batch.tokens`` and ``batch.drop_long`` count tokens before they are split.

    Paper: Provilkov et al. 2020, section 3, with the difference above.

    Args:
        rate: probability that a token is split, p.
        tokenizer: path of the JSON of a byte-pair encoding, as ``zoo tokenizer train`` writes it.
        max_length: maximum number of tokens of a text, before tokens are split.
        truncate: cut longer texts; by default they raise DataError.
        lowercase: convert texts to lower case.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        a text -> [S].
    """

    name: ClassVar[str] = "split-text"
    paper: ClassVar[str] = (
        "Provilkov, Emelianenko and Voita 2020, BPE-Dropout: simple and effective subword "
        "regularization. https://arxiv.org/abs/1910.13267"
    )

    def __init__(
        self,
        *,
        rate: Annotated[float, Field(ge=0, le=1)] = 0.1,
        tokenizer: str | None = None,
        max_length: Annotated[int, Field(ge=1)] | None = None,
        truncate: bool = False,
        lowercase: bool = False,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        super().__init__(
            tokenizer=tokenizer,
            max_length=max_length,
            truncate=truncate,
            lowercase=lowercase,
            schema=schema,
            stored=stored,
        )
        self.rate = rate

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        if not self._is_sequence():
            raise ZooError("preprocessor 'split-text' makes sequences; use 'text' for one token")
        return super().outputs(key)

    def stored(self) -> str:
        text = super().stored()
        if "merges" not in (model := json.loads(text)["model"]):
            raise ZooError(
                "preprocessor 'split-text' needs a byte-pair encoding, but the tokenizer is of "
                f"type {model.get('type')}; make one with: zoo tokenizer train --type bpe"
            )
        return text

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        new = np.ones(len(array), dtype=bool)
        max_length = MAX_PARTS * len(array)
        while new.any() and len(array) <= max_length:
            pairs = self._pairs[array]
            split = new & (pairs[:, 0] >= 0) & (rng.random(len(array)) < self.rate)
            counts = np.where(split, 2, 1)
            new = np.repeat(split, counts)
            array = np.repeat(array, counts)
            array[new] = pairs[split].ravel()
        return {key: array}

    @cached_property
    def _pairs(self) -> Array:
        """The pair that each token was merged from [V, 2]; -1 for tokens that are not merged."""
        model = json.loads(self.stored())["model"]
        vocab: dict[str, int] = model["vocab"]
        prefix: str = model.get("continuing_subword_prefix") or ""
        ids = self.encoder.tokenizer.backend.get_vocab().values()  # also of added tokens
        if max(ids) >= MAX_IDS:
            raise ZooError(f"the tokenizer has the token ID {max(ids):,}; the limit is {MAX_IDS:,}")
        pairs = np.full((max(ids) + 1, 2), -1, dtype=np.int64)
        for merge in reversed(model["merges"]):  # of two merges to one token, the first is used
            first, second = merge.split(" ") if isinstance(merge, str) else merge
            pairs[vocab[first + second.removeprefix(prefix)]] = vocab[first], vocab[second]
        return pairs

    def example(self, rng: np.random.Generator) -> Any:
        return " ".join(rng.choice(["cat", "at", "tact"], rng.integers(1, 6)))

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_PIECES
