"""Names of classes and their IDs."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoo import DataError, ZooError
from zoo.plugin import TensorSchema, suggest, truncate

Name = str | int


class ClassNames:
    """Maps the names of classes to IDs, in the order of the list.

    Args:
        names: the names; None before `fit`.
        num_classes: the number of classes of the model, or None if it is not known.
    """

    def __init__(self, names: Sequence[Name] | None, num_classes: int | None) -> None:
        self.names = None if names is None else list(names)
        self.num_classes = num_classes
        self.ids = {name: number for number, name in enumerate(names or ())}
        if names is not None:
            if len(self.ids) < len(names):
                twice = next(name for name in names if list(names).count(name) > 1)
                raise ZooError(f"classes contains {twice!r} more than once")
            self._check_count(
                names,
                "classes has",
                "write {target: label}, without classes, for those of the data",
            )

    def fit(self, labels: Iterable[Any]) -> dict[str, Any]:
        """Return the parameter ``classes``, sorted; integers from 0 keep their values as IDs."""
        if self.names is not None:
            return {}
        found = {to_name(label) for label in labels} - {""}
        names: list[Name] = sorted(found, key=lambda name: (isinstance(name, str), name))
        numbers = [name for name in names if isinstance(name, int)]
        if len(numbers) == len(names) and numbers and numbers[0] >= 0:
            highest = numbers[-1]
            if highest < (self.num_classes or len(names)):
                names = list(range(highest + 1))
        self._check_count(names, "the training data have")
        return {"classes": names}

    def encode(self, label: Any) -> int:
        name = to_name(label)
        if self.names is None:
            raise ZooError(
                "the names of the classes are not known; set 'classes', or fit the preprocessor "
                "on training data"
            )
        if name not in self.ids:
            known = suggest(str(name), map(str, self.names))
            raise DataError(f"unknown label {truncate(repr(name), 80)}{known}")
        return self.ids[name]

    def decode(self, number: int) -> str:
        if self.names is None or not 0 <= number < len(self.names):
            return str(number)
        return str(self.names[number])

    def random(self, rng: np.random.Generator) -> Name:
        return (self.names or ["a", "b", "c"])[int(rng.integers(len(self.names or "abc")))]

    def _check_count(self, names: Sequence[Name], subject: str, remedy: str = "") -> None:
        count = len(names)
        if self.num_classes is not None and count > self.num_classes:
            listed = truncate(", ".join(map(repr, names)), 200)
            raise ZooError(
                f"{subject} {count} labels, but the model has {self.num_classes} classes; set the "
                f"number of classes of the model to {count}, if these are its labels: {listed}"
                + (remedy and f"; or {remedy}")
            )


def to_name(label: Any) -> Name:
    """Return a label as a string or an integer."""
    if isinstance(label, str):
        return label
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return int(label)
    raise DataError(f"expected a label (text or integer), found {truncate(repr(label), 80)}")


def class_count(schema: TensorSchema) -> int | None:
    """Return the number of classes of the model, or None if its schema does not declare it."""
    if is_multi_hot(schema):
        assert schema.dims is not None
        return int(schema.dims[-1])
    return schema.below if isinstance(schema.below, int) else None


def is_multi_hot(schema: TensorSchema) -> bool:
    """Whether the last dimension of the target has one value for each class."""
    return (
        schema.dims is not None
        and len(schema.dims) > 1
        and isinstance(schema.dims[-1], int)
        and schema.dtype != "integer"
    )
