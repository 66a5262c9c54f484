"""Dataset 'copy-task'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic
from numpy.typing import NDArray

from zoo import ZooError
from zoo.plugin import (
    Array,
    Dataset,
    Example,
    Examples,
    Field,
    TensorSchema,
    random_integers,
    random_numbers,
)

Length = Annotated[int, pydantic.Field(ge=1, le=10_000)]
_POSITIONS = ("B", "S")


class CopyTask(Dataset):
    """Random sequences of bits that a model reads and then outputs, for the model `tagger`.

    The source has one more channel for the start and one for the end of the sequence, followed by
    zeros while the model outputs. The examples are made; one depends on the seed and its index
    only.

    Args:
        bits: number of bits of a vector.
        least: shortest sequence.
        most: longest sequence.
        count: number of examples.
        seed: random seed.

    Fields:
        source: array, float32 [S, bits + 2], S = 2 n + 2 for n vectors. target: array, float32
        [S, bits]. mask: array, bool [S], True where the model outputs.
    """

    name: ClassVar[str] = "copy-task"
    paper: ClassVar[str] = (
        "Graves, Wayne and Danihelka 2014, Neural Turing Machines, arXiv:1410.5401"
    )

    def __init__(
        self,
        *,
        bits: Annotated[int, pydantic.Field(ge=1, le=1024)] = 8,
        least: Length = 1,
        most: Length = 20,
        count: Annotated[int, pydantic.Field(ge=1, le=10**8)] = 10_000,
        seed: Annotated[int, pydantic.Field(ge=0, lt=2**63)] = 0,
    ) -> None:
        if least > most:
            raise ZooError(f"least ({least}) must not be greater than most ({most})")
        self.bits, self.least, self.most = bits, least, most
        self.count, self.seed = count, seed

    def fields(self) -> Mapping[str, Field]:
        return {
            "source": Field("array", TensorSchema((*_POSITIONS, self.bits + 2), "float")),
            "target": Field("array", TensorSchema((*_POSITIONS, self.bits), "float")),
            "mask": Field("array", TensorSchema(_POSITIONS, "bool")),
        }

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Sequences(self)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        return {"bits": 3, "most": 4, "count": 3}


class _Sequences(Examples):
    def __init__(self, task: CopyTask) -> None:
        self.task = task

    def __len__(self) -> int:
        return self.task.count

    def __getitem__(self, index: int) -> Example:
        return {name: values[0] for name, values in self.read_many(np.array([index])).items()}

    def read_many(self, indices: Array) -> Mapping[str, list[Array]]:
        bits = self.task.bits
        lengths = self._lengths(indices)
        numbers = random_numbers(self.task.seed, indices, 1 + int(lengths.max()) * bits)
        sequences = (numbers[:, 1:] < 0.5).astype(np.float32).reshape(len(indices), -1, bits)
        found: dict[str, list[Array]] = {"source": [], "target": [], "mask": []}
        for sequence, n in zip(sequences, lengths.tolist(), strict=True):
            source = np.zeros((2 * n + 2, bits + 2), np.float32)
            source[1 : n + 1, :-2] = sequence[:n]
            source[0, -2] = source[n + 1, -1] = 1
            target = np.zeros((2 * n + 2, bits), np.float32)
            target[n + 2 :] = sequence[:n]
            found["source"].append(source)
            found["target"].append(target)
            found["mask"].append(np.arange(2 * n + 2) >= n + 2)
        return found

    def _lengths(self, indices: Array) -> NDArray[np.int64]:
        """Return the length of the sequence of each example."""
        first = random_numbers(self.task.seed, indices, 1)[:, 0]
        return self.task.least + random_integers(first, self.task.most - self.task.least + 1)

    def origin(self, index: int) -> str:
        return f"copy-task[{index}]"

    def sizes(self) -> Sequence[int] | None:
        if len(self) > 10**6:
            return None
        sizes: list[int] = (2 * self._lengths(np.arange(len(self))) + 2).tolist()
        return sizes
