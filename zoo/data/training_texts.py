"""Texts that a tokenizer is trained on: those of a spec's training data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zoo.data.reader import iterate_values
from zoo.errors import ZooError
from zoo.spec.spec import Spec
from zoo.spec.training import Training

_CONTENTS = ("text", "texts", "messages")


def spec_texts(spec: Spec, key: str | None = None) -> Callable[[], Iterator[str]]:
    """Return a function that iterates over the texts of a spec's training data, which are those
    that the model is trained on.

    Args:
        key: a key of the batch; by default all keys with texts.

    Raises:
        ZooError: if the spec has no training data, or the data has no texts.
        DataError: if the data cannot be read.
    """
    if spec.sections.train is None:
        raise ZooError(
            f"spec '{spec.name}' has no section train whose data has texts; pass text files"
        )
    training: Training = spec.sections.train.build()
    dataset = training.data.build()
    fields = dataset.fields()
    known = [name for name, field in fields.items() if field.content in _CONTENTS]
    keys = [name for name in known if key is None or name == key]
    if not keys:
        names = ", ".join(f"'{name}'" for name in known) or "none"
        wanted = "texts" if key is None else f"texts of '{key}'"
        raise ZooError(f"dataset '{dataset.name}' has no {wanted} (fields with texts: {names})")
    examples = dataset.open()

    def texts() -> Iterator[str]:
        for name in keys:
            for value in iterate_values(examples, name, skip=training.bad_data == "skip"):
                yield from _strings(value)

    return texts


def spec_unit(spec: Spec) -> str | None:
    """Return the parameter ``unit`` of a spec's training data, such as "document", if it has it."""
    if spec.sections.train is None:
        return None
    data = spec.resolve()["train"]["data"]
    while isinstance(data, Mapping) and "unit" not in data:
        data = data.get("data")  # of a split
    unit = data["unit"] if isinstance(data, Mapping) else None
    return unit if isinstance(unit, str) else None


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts of a value: a text, several, or messages of a conversation."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings(value.get("content", ""))
    else:
        for item in value:
            yield from _strings(item)
