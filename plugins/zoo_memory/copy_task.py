"""Dataset 'copy-task'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic

from zoo import ZooError
from zoo.plugin import Array, Dataset, Example, Examples, Field, TensorSchema

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
        rng, n = self._start(index)
        sequence = rng.integers(2, size=(n, self.task.bits)).astype(np.float32)
        source = np.zeros((2 * n + 2, self.task.bits + 2), np.float32)
        source[1 : n + 1, :-2] = sequence
        source[0, -2] = source[n + 1, -1] = 1
        target = np.zeros((2 * n + 2, self.task.bits), np.float32)
        target[n + 2 :] = sequence
        mask: Array = np.arange(2 * n + 2) >= n + 2
        return {"source": source, "target": target, "mask": mask}

    def _start(self, index: int) -> tuple[np.random.Generator, int]:
        """Return the generator of an example, and the length of its sequence."""
        rng = np.random.default_rng((self.task.seed, index))
        return rng, int(rng.integers(self.task.least, self.task.most + 1))

    def origin(self, index: int) -> str:
        return f"copy-task[{index}]"

    def sizes(self) -> Sequence[int] | None:
        if len(self) > 10**6:
            return None
        return [2 * self._start(index)[1] + 2 for index in range(len(self))]
