"""Dataset 'split'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from zoo import DataError
from zoo.plugin import (
    Blueprint,
    Dataset,
    Example,
    Examples,
    Field,
    InvalidParameter,
    Values,
    suggest,
)

_CONTENTS = ("text", "label")


class Split(Dataset):
    """One of two parts of another dataset, for example to hold out validation data.

    Two datasets that differ in ``part`` only have no example in common, and together all examples.

    Args:
        data: the dataset to split.
        part: ``train``, or the part that is ``held-out``.
        fraction: share of the examples that is held out, at least one.
        shuffle: hold out random examples; otherwise the last ones.
        seed: random seed of ``shuffle``.
        group: a field of ``data``, text or label: all examples with the same value are in the same
            part, so that a sentence with several translations is not on both sides. All values
            are read when the dataset is opened.

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
        group: str | None = None,
    ) -> None:
        self.data: Dataset = data.build()
        fields = self.data.fields()
        if group is not None and group not in fields:
            raise InvalidParameter(
                "group",
                f"dataset '{self.data.name}' has no field '{group}'{suggest(group, fields)}",
            )
        if group is not None and fields[group].content not in _CONTENTS:
            content = fields[group].content
            raise InvalidParameter(
                "group", f"'{group}' contains {content}; examples are grouped by text or label"
            )
        self.part = part
        self.fraction = fraction
        self.shuffle = shuffle
        self.seed = seed
        self.group = group

    def fields(self) -> Mapping[str, Field]:
        return self.data.fields()

    def open(self, *, evaluation: bool = False) -> Examples:
        examples = self.data.open(evaluation=evaluation)
        count = len(examples)
        if count < 2:
            raise DataError(f"dataset '{self.data.name}' has {count} example, too few to split")
        groups = self._groups(examples)
        number = int(groups.max()) + 1
        if number < 2:
            raise DataError(
                f"all {count} examples have the same '{self.group}', so they cannot be split",
                examples.origin(0),
            )
        order = np.arange(number)
        if self.shuffle:
            order = np.random.default_rng((self.seed, number)).permutation(number)
        wanted = min(max(round(count * self.fraction), 1), count - 1)
        is_held_out = _last_groups(order, np.bincount(groups), wanted)[groups]
        return _Part(examples, np.flatnonzero(is_held_out == (self.part == "held-out")))

    def _groups(self, examples: Examples) -> NDArray[np.int64]:
        """Return the number of the group of each example, in the order of their first examples."""
        if self.group is None:
            return np.arange(len(examples))
        numbers: dict[Any, int] = {}
        found = [
            numbers.setdefault(_value(examples, index, self.group), len(numbers))
            for index in range(len(examples))
        ]
        return np.array(found, dtype=np.int64)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        (folder / "all.txt").write_text("one\ntwo\nthree\nfour\nfive\n", encoding="utf-8")
        data = {"type": "plain-text", "files": str(folder / "all.txt")}
        return {"data": data, "part": "train", "fraction": 0.4}


def _value(examples: Examples, index: int, field: str) -> Any:
    """Return the value that groups an example: the first of several references, and the origin of
    an example that cannot be read, which is reported when it is used."""
    try:
        value = examples[index][field]
    except DataError:
        return None, examples.origin(index)
    return value[0] if isinstance(value, (list, tuple)) else value


def _last_groups(
    order: NDArray[np.int64], sizes: NDArray[np.int64], wanted: int
) -> NDArray[np.bool_]:
    """Return which groups are held out: the last ones in an order, with about as many examples as
    wanted, at least one group and not all."""
    total = np.cumsum(sizes[order][::-1])
    count = int(np.searchsorted(total, wanted)) + 1
    # The last group is left out if that is closer to the number of examples that is wanted.
    if count > 1 and total[count - 1] - wanted > wanted - total[count - 2]:
        count -= 1
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[len(order) - min(count, len(order) - 1) :]] = True
    return chosen


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

    def position_names(self, index: int) -> Sequence[str] | None:
        return self.examples.position_names(int(self.indices[index]))

    def decodes_files(self) -> bool:
        return self.examples.decodes_files()

    def sizes(self) -> Sequence[int] | None:
        sizes = self.examples.sizes()
        return None if sizes is None else [sizes[index] for index in self.indices]
