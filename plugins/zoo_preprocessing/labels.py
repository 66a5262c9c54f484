"""Preprocessor 'labels': several class names as IDs, or as a multi-hot vector."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from zoo import DataError, ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema, truncate
from zoo_preprocessing.class_names import ClassNames, Name, class_count, is_multi_hot


class Labels(Preprocessor):
    r"""IDs of several class names, or 1 for each class that an item has.

    .. math:: y_s = i \quad \text{or} \quad y_{si} = \mathbb{1}[c_i \in \text{labels of } s]

    The schema of the model decides: [B, S] takes one label for each position, [B, C] the labels of
    an item, which may have none, and [B, S, C] a list of labels for each position. An empty label
    marks a position without one, such as a node that is not in the loss: -1, if the model takes it.

    Args:
        classes: names of the classes, in the order of their IDs; by default the sorted labels of
            the training data, and integers that are valid IDs keep their values.
        schema: schema of the key in the model's batch.

    Shapes:
        S labels -> [S]; any number of labels -> [C]; S lists of labels -> [S, C].
    """

    name: ClassVar[str] = "labels"
    paper: ClassVar[str] = (
        "Bishop 2006, Pattern recognition and machine learning, section 4.1 (1-of-K coding)"
    )
    content: ClassVar[Any] = "labels"
    test_params: ClassVar[Mapping[str, Any]] = {"classes": ["cat", "dog", 7]}

    def __init__(
        self, *, classes: list[str | int] | None = None, schema: FromParent[TensorSchema]
    ) -> None:
        self.schema = schema
        self.classes = ClassNames(classes, class_count(schema))
        self.multi_hot = is_multi_hot(schema)

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        dims = self.schema.dims
        valid = dims is None or len(dims) in ((2, 3) if self.multi_hot else (2,))
        if self.schema.prefix or self.schema.suffix:
            raise ZooError(
                "preprocessor 'labels' numbers classes from 0, but the model takes a text with "
                "start and end tokens; use the preprocessor 'text'"
            )
        if not valid or (self.schema.dtype == "float" and not self.multi_hot):
            raise ZooError(
                "preprocessor 'labels' makes class IDs [B, S], or multi-hot [B, C] or [B, S, C], "
                f"but the model takes {self.schema.dtype} {self.schema.format()}"
            )
        return {key: self.schema._replace(dtype="float" if self.multi_hot else "integer")}

    def fit(self, values: Iterable[Any]) -> dict[str, Any]:
        return self.classes.fit(label for value in values for label in self._flatten(value))

    def encode(self, value: Any) -> Array:
        rows = self._to_rows(value)
        if not self.multi_hot:
            return np.array([self._encode(row) for row in rows], dtype=np.int64)
        if self._is_nested():
            return np.stack([self._to_multi_hot(row) for row in rows])
        return self._to_multi_hot(rows)

    def _encode(self, label: Any) -> int:
        return -1 if label == "" and self.schema.minimum is None else self.classes.encode(label)

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.classes.decode(number) for number in ids)

    def _is_nested(self) -> bool:
        return self.schema.dims is not None and len(self.schema.dims) == 3

    def _flatten(self, value: Any) -> Iterator[Any]:
        for row in self._to_rows(value):
            yield from _to_list(row, may_be_empty=True) if self._is_nested() else [row]

    def _to_rows(self, value: Any) -> list[Any]:
        may_be_empty = self.multi_hot and not self._is_nested()
        return _to_list(value, may_be_empty=may_be_empty)

    def _to_multi_hot(self, labels: Any) -> Array:
        row = np.zeros(self.classes.num_classes or 0, dtype=np.float32)
        row[[self.classes.encode(label) for label in _to_list(labels, may_be_empty=True)]] = 1
        return row

    def example(self, rng: np.random.Generator) -> list[Name] | list[list[Name]]:
        def labels() -> list[Name]:
            return [self.classes.random(rng) for _ in range(int(rng.integers(1, 4)))]

        return [labels() for _ in range(2)] if self._is_nested() else labels()

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=5)


def _to_list(value: Any, *, may_be_empty: bool = False) -> list[Any]:
    is_list = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    if not is_list or not (len(value) or may_be_empty):
        raise DataError(f"expected a list of labels, found {truncate(repr(value), 80)}")
    return list(value)
