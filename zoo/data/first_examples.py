"""The first examples of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from zoo.errors import ZooError
from zoo.interfaces import Dataset, Example, Examples, Field
from zoo.registry.blueprint import Blueprint


class FirstExamples(Dataset):
    """A dataset that consists of the first examples of another; it is used from Python only.

    Args:
        dataset: the other dataset.
        count: maximum number of examples.
    """

    name: ClassVar[str] = "first-examples"

    def __init__(self, *, dataset: Blueprint[Dataset], count: int) -> None:
        self.dataset = dataset.build()
        self.count = count

    def fields(self) -> Mapping[str, Field]:
        return self.dataset.fields()

    def open(self, *, evaluation: bool = False) -> Examples:
        return _First(self.dataset.open(evaluation=evaluation), self.count)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        raise ZooError(f"dataset '{cls.name}' has no files of its own")


class _First(Examples):
    def __init__(self, examples: Examples, count: int) -> None:
        self.examples = examples
        self.length = min(count, len(examples))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Example:
        return self.examples[index]

    def origin(self, index: int) -> str:
        return self.examples.origin(index)

    def position_names(self, index: int) -> Sequence[str] | None:
        return self.examples.position_names(index)

    def decodes_files(self) -> bool:
        return self.examples.decodes_files()

    def sizes(self) -> Sequence[int] | None:
        sizes = self.examples.sizes()
        return None if sizes is None else sizes[: self.length]
