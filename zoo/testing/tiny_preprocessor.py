"""A minimal preprocessor, for the slots of components under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from zoo.errors import DataError
from zoo.interfaces import Array, Preprocessor, TensorSchema
from zoo.interfaces.signature import FromParent


class TinyPreprocessor(Preprocessor):
    """Characters of a text as IDs; noise replaces some of them by 0."""

    name: ClassVar[str] = "tiny"
    content: ClassVar[Any] = "text"

    def __init__(
        self,
        *,
        alphabet: str = "",
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.schema = schema
        self.alphabet = alphabet or stored or ""

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        return {key: self.schema}

    def fit(self, values: Iterable[str]) -> dict[str, Any]:
        return {"alphabet": "".join(sorted({letter for value in values for letter in value}))}

    def stored(self) -> str:
        return self.alphabet

    def encode(self, value: Any) -> Array:
        if not isinstance(value, str):
            raise DataError(f"expected a text, found {type(value).__name__}")
        return np.array([self.alphabet.index(letter) for letter in value], dtype=np.int64)

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        return {key: np.where(rng.random(len(array)) < 0.5, 0, array)}

    def example(self, rng: np.random.Generator) -> str:
        return "".join(rng.choice(list("abc"), int(rng.integers(1, 6))))

    @classmethod
    def example_stored(cls) -> str:
        return "abc"

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=3)
