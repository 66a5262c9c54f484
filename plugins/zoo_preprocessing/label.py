"""Preprocessor 'label': the name of a class as its ID."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from zoo import ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema
from zoo_preprocessing.class_names import ClassNames, class_count


class Label(Preprocessor):
    r"""ID of a class name.

    .. math:: y = i \quad \text{for the label } c_i \text{ of the classes } c_0, \dots, c_{C-1}

    Args:
        classes: names of the classes, in the order of their IDs; by default the sorted labels of
            the training data, and integers that are valid IDs keep their values.
        schema: schema of the key in the model's batch.

    Shapes:
        a string or an integer -> [].
    """

    name: ClassVar[str] = "label"
    paper: ClassVar[str] = (
        "Bishop 2006, Pattern recognition and machine learning, section 4.1 (1-of-K coding)"
    )
    content: ClassVar[Any] = "label"
    test_params: ClassVar[Mapping[str, Any]] = {"classes": ["cat", "dog", 7]}

    def __init__(
        self, *, classes: list[str | int] | None = None, schema: FromParent[TensorSchema]
    ) -> None:
        self.schema = schema
        self.classes = ClassNames(classes, class_count(schema))

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        dims = self.schema.dims
        if self.schema.dtype not in ("integer", "number") or (dims and len(dims) != 1):
            raise ZooError(
                "preprocessor 'label' makes one class ID for each item, integer [B], but the model "
                f"takes {self.schema.dtype} {self.schema.format()}"
            )
        return {key: self.schema._replace(dtype="integer", dims=("B",))}

    def fit(self, values: Iterable[Any]) -> dict[str, Any]:
        return self.classes.fit(values)

    def encode(self, value: Any) -> Array:
        return np.array(self.classes.encode(value), dtype=np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        return self.classes.decode(ids[0])

    def example(self, rng: np.random.Generator) -> str | int:
        return self.classes.random(rng)

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B",), "integer", below=5)
