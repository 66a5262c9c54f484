"""Dataset 'split'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from zoo import DataError
from zoo.plugin import Blueprint, Dataset, Example, Examples, Field, Values


class Split(Dataset):
    """One of two parts of another dataset, for example to hold out validation data.

    Two datasets that differ in ``part`` only have no example in common, and together all examples.

    Args:
        data: the dataset to split.
        part: ``train``, or the part that is ``held-out``.
        fraction: share of the examples that is held out, at least one.
        shuffle: hold out random examples; otherwise the last ones.
        seed: random seed of ``shuffle``.

    Fields:
        Those of ``data``.
    """

    name: ClassVar[str] = "split"

    def __init__(
        self,
        *,
        data: Blueprint[Dataset],
        part: Literal["train", "held-out"],
        fraction: Annotated[float, pydantic.Field(gt=0, lt=1)] = 0.1,
        shuffle: bool = True,
        seed: Annotated[int, pydantic.Field(ge=0, lt=2**63)] = 0,
    ) -> None:
        self.data: Dataset = data.build()
        self.part = part
        self.fraction = fraction
        self.shuffle = shuffle
        self.seed = seed

    def fields(self) -> Mapping[str, Field]:
        return self.data.fields()

    def open(self, *, evaluation: bool = False) -> Examples:
        examples = self.data.open(evaluation=evaluation)
        count = len(examples)
        if count < 2:
            raise DataError(f"dataset '{self.data.name}' has {count} example, too few to split")
        held_out = min(max(round(count * self.fraction), 1), count - 1)
        order = np.arange(count)
        if self.shuffle:
            order = np.random.default_rng((self.seed, count)).permutation(count)
        chosen = order[count - held_out :] if self.part == "held-out" else order[: count - held_out]
        return _Part(examples, np.sort(chosen))

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        (folder / "all.txt").write_text("one\ntwo\nthree\nfour\nfive\n", encoding="utf-8")
        data = {"type": "plain-text", "files": str(folder / "all.txt")}
        return {"data": data, "part": "train", "fraction": 0.4}


class _Part(Examples):
    def __init__(self, examples: Examples, indices: NDArray[np.int64]) -> None:
        self.examples = examples
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Example:
        return self.examples[int(self.indices[index])]

    def read_many(self, indices: NDArray[np.int64]) -> Mapping[str, Values]:
        return self.examples.read_many(self.indices[indices])

    def origin(self, index: int) -> str:
        return self.examples.origin(int(self.indices[index]))

    def sizes(self) -> Sequence[int] | None:
        sizes = self.examples.sizes()
        return None if sizes is None else [sizes[index] for index in self.indices]
