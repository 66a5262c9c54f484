"""Dataset 'joined'."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic

from zoo import DataError, ZooError
from zoo.plugin import (
    Array,
    Audio,
    Blueprint,
    Dataset,
    Example,
    Examples,
    Field,
    Values,
    random_numbers,
)
from zoo_datasets.audio import AudioFolder

Number = Annotated[int, pydantic.Field(ge=1, le=64)]


class Joined(Dataset):
    """Recordings of another dataset joined to longer ones, such as digits to numbers.

    The text of an example has the targets of its recordings, separated by spaces. An example
    depends on the seed and its index only.

    Args:
        data: a dataset with audio and a text or label, the fields ``source`` and ``target``.
        least: smallest number of recordings.
        most: largest number of recordings.
        count: number of examples.
        pause: longest silence between two recordings in seconds.
        group: a field of ``data``; joined recordings have the same value of it, such as a speaker.
        seed: random seed.

    Fields:
        source: audio. target: text.
    """

    name: ClassVar[str] = "joined"

    def __init__(
        self,
        *,
        data: Blueprint[Dataset],
        least: Number = 1,
        most: Number = 1,
        count: Annotated[int, pydantic.Field(ge=1, le=10**8)] = 1000,
        pause: Annotated[float, pydantic.Field(ge=0, le=60)] = 0.0,
        group: str | None = None,
        seed: Annotated[int, pydantic.Field(ge=0, lt=2**63)] = 0,
    ) -> None:
        if least > most:
            raise ZooError(f"least ({least}) must not be greater than most ({most})")
        self.data: Dataset = data.build()
        if group is not None and group not in self.data.fields():
            names = ", ".join(self.data.fields())
            raise ZooError(f"dataset '{self.data.name}' has no field '{group}' (fields: {names})")
        self.least, self.most, self.count = least, most, count
        self.pause, self.group, self.seed = pause, group, seed

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("audio"), "target": Field("text")}

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Joined(self, self.data.open(evaluation=evaluation))

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        data = {"type": "audio", **AudioFolder.write_example(folder)}
        return {"data": data, "least": 1, "most": 3, "count": 4, "pause": 0.001}


class _Joined(Examples):
    def __init__(self, dataset: Joined, recordings: Examples) -> None:
        self.dataset = dataset
        self.recordings = recordings
        group = dataset.group
        rows: dict[Any, list[int]] = {}
        for index in range(len(recordings)):
            rows.setdefault(recordings[index][group] if group else None, []).append(index)
        self.groups = list(rows.values())
        if not self.groups:
            raise DataError(f"dataset '{dataset.data.name}' has no recordings")

    def __len__(self) -> int:
        return self.dataset.count

    def __getitem__(self, index: int) -> Example:
        ((chosen, pauses),) = self._choose(np.array([index]))
        return self._join(index, chosen, pauses)

    def read_many(self, indices: Array) -> Mapping[str, Values]:
        pairs = zip(indices.tolist(), self._choose(indices), strict=True)
        examples = [self._join(index, *choice) for index, choice in pairs]
        return {name: [example[name] for example in examples] for name in ("source", "target")}

    def decodes_files(self) -> bool:
        return self.recordings.decodes_files()

    def _join(self, index: int, chosen: list[int], pauses: list[float]) -> Example:
        examples = [self.recordings[row] for row in chosen]
        rate = examples[0]["source"].rate
        if any(example["source"].rate != rate for example in examples):
            raise DataError("the recordings have different sampling rates", self.origin(index))
        pieces: list[Any] = []
        for example, pause in zip(examples, pauses, strict=True):
            silence = int(pause * self.dataset.pause * rate) if pieces else 0
            pieces += [np.zeros(silence, np.float32), example["source"].samples]
        text = " ".join(str(example["target"]) for example in examples)
        return {"source": Audio(np.concatenate(pieces), rate), "target": text}

    def _choose(self, indices: Array) -> Iterator[tuple[list[int], list[float]]]:
        """Yield the recordings of each example, and random numbers for the pauses before them."""
        most = self.dataset.most
        for start in range(0, len(indices), 1024):
            part = indices[start : start + 1024]
            for row in random_numbers(self.dataset.seed, part, 2 + 2 * most).tolist():
                group = self.groups[int(row[0] * len(self.groups))]
                number = self.dataset.least + int(row[1] * (most - self.dataset.least + 1))
                chosen = [group[int(place * len(group))] for place in row[2 : 2 + number]]
                yield chosen, row[2 + most : 2 + most + number]

    def origin(self, index: int) -> str:
        return f"joined example {index} of {self.recordings.origin(0)}"

    def sizes(self) -> Sequence[int] | None:
        lengths = self.recordings.sizes()
        if lengths is None or len(self) > 10**6:
            return None
        chosen = self._choose(np.arange(len(self)))
        return [sum(lengths[row] for row in rows) for rows, _ in chosen]
