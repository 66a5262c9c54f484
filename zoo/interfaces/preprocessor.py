"""Interface of preprocessors: from the values of a field to the tensors of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zoo.errors import ZooError
from zoo.interfaces.batch_schema import TensorSchema
from zoo.interfaces.component import Component
from zoo.interfaces.dataset import Content

Array = NDArray[Any]
Arrays = Sequence[Array] | Array
"""The arrays of several examples, in a sequence or along the first dimension of one array."""


class Preprocessor(Component, ABC):
    """Converts the values of one field to arrays for one key of a model's batch.

    The section ``preprocessing`` of a spec has one preprocessor for each key. It is saved with the
    model, so that `zoo.generate` takes the same values as training: texts, images, audio. The
    constructor may declare

    - ``schema: FromParent[TensorSchema]``, the schema of the key in the model's batch;
    - ``stored: FromParent[str | None]``, the text that `stored` of the saved model returned.

    Laws:
        `encode` returns the same array for the same value, of the shape and dtype of `outputs`;
        `transform` depends on its random generator only; `encode_many` and `transform_many` return
        the same arrays as one by one; `fit` returns valid parameters; a
        preprocessor that is built with fitted parameters and the stored text encodes equally.
    """

    kind: ClassVar[str] = "preprocessor"
    content: ClassVar[Content]
    """The type of the values that it takes."""

    @abstractmethod
    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        """Return the keys of the batch that it makes, and their schemas. No file is opened.

        Raises:
            ZooError: if it cannot make what the model's schema of the key asks for.
        """

    def fit(self, values: Iterable[Any]) -> dict[str, Any]:
        """Return the parameters that depend on the training data, such as the names of classes.

        They are set in the spec of the model before it is trained. Default: none.
        """
        return {}

    def stored(self) -> str | None:
        """Return a text to save with the model, such as a tokenizer as JSON; by default None."""
        return None

    @abstractmethod
    def encode(self, value: Any) -> Array:
        """Return the array of one value, without the batch dimension and without padding.

        Raises:
            DataError: if the value cannot be used.
        """

    def encode_many(self, values: Sequence[Any]) -> Arrays:
        """Return the arrays of several values; override it if that is faster than one by one.

        Args:
            values: images and arrays of equal shape may be one array with an additional first
                dimension. The result may be one, too.
        """
        return [self.encode(value) for value in values]

    def encode_prompts(self, values: Sequence[Any]) -> Arrays:
        """Return the token IDs that generation continues; by default those of the values. A
        conversation ends where an answer begins."""
        return self.encode_many(values)

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        """Return the arrays of a training example, by key of the batch: random augmentation, or
        random masking. Default: the array, unchanged."""
        return {key: array}

    def transform_many(
        self, key: str, arrays: Arrays, rngs: Iterable[np.random.Generator]
    ) -> Mapping[str, Arrays]:
        """Return the arrays of several training examples; override it if that is faster than one by
        one. Both forms return the same values.

        Args:
            rngs: the generators of the examples, in their order. A generator is valid until the
                next one is taken.
        """
        pairs = zip(arrays, rngs, strict=True)
        found = [self.transform(key, array, rng) for array, rng in pairs]
        return {name: [made[name] for made in found] for name in found[0]}

    def lengths(self, sizes: Array) -> Array:
        """Return the numbers of tokens of encoded arrays by their sizes, before random changes of
        `transform`; by default the sizes. Others are those of arrays that contain more than
        tokens."""
        return sizes

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of generated token IDs, or the name of a class."""
        raise ZooError(f"preprocessor '{self.name}' cannot decode")

    def position_names(self, value: Any) -> Sequence[str] | None:
        """Return what each position of an encoded value stands for, such as the words of a text; by
        default None: it has no names."""
        return None

    def read(self, path: Path) -> Any:
        """Return the value in a file, as `encode` takes it."""
        raise ZooError(f"preprocessor '{self.name}' does not read files")

    @abstractmethod
    def example(self, rng: np.random.Generator) -> Any:
        """Return a random value for the laws."""

    @classmethod
    def example_stored(cls) -> str | None:
        """Return a stored text for the laws; None if it needs none."""
        return None

    @classmethod
    @abstractmethod
    def example_schema(cls) -> TensorSchema:
        """Return the schema of a key that it can make, for the laws."""
