"""Dataset 'delta-audio'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic

from zoo import DataError
from zoo.plugin import Array, Audio, Dataset, Example, Examples, Field, FileBytes
from zoo_datasets.csv_rows import CsvRows, require_columns


class DeltaAudio(Dataset):
    """Recordings in one file of 16-bit differences, listed in a table.

    The file has the high bytes, then the low bytes of the differences of all samples, as unsigned
    numbers: 2d for a difference d of at least 0, -2d - 1 otherwise. The table has a header, tabs
    between columns, and one recording in each line, in the order of the file; the column
    ``samples`` is its length. Used for the Free Spoken Digit Dataset.

    Args:
        file: the file of samples; may be compressed.
        index: the table.
        rate: sampling rate in Hz.
        target: the column with the label.
        group: a column that becomes the field ``group``, for the dataset `joined`.
        where: for some columns, the values of the recordings to use.

    Fields:
        source: audio. target: label. group, if it is set: label.
    """

    name: ClassVar[str] = "delta-audio"

    def __init__(
        self,
        *,
        file: str,
        index: str,
        rate: Annotated[int, pydantic.Field(ge=1)],
        target: str,
        group: str | None = None,
        where: dict[str, list[str | int]] | None = None,
    ) -> None:
        self.file, self.index, self.rate = file, index, rate
        self.target, self.group, self.where = target, group, where or {}

    def fields(self) -> Mapping[str, Field]:
        fields = {"source": Field("audio"), "target": Field("label")}
        return {**fields, "group": Field("label")} if self.group else fields

    def open(self, *, evaluation: bool = False) -> Examples:
        table = CsvRows(self.index, delimiter="\t")
        columns = [self.target, "samples", *([self.group] if self.group else []), *self.where]
        require_columns(table, columns)
        rows = list(table)
        lengths = [_read_length(row["samples"], table.origin(i)) for i, row in enumerate(rows)]
        samples = _read_samples(FileBytes(self.file))
        if sum(lengths) != len(samples):
            raise DataError(
                f"{self.file} has {len(samples):,} samples, but {self.index} lists {sum(lengths):,}"
            )
        allowed = {column: set(map(str, values)) for column, values in self.where.items()}
        chosen = [
            i
            for i, row in enumerate(rows)
            if all(row[c] in values for c, values in allowed.items())
        ]
        if not chosen:
            raise DataError("no recording has the values of 'where'", str(table.path))
        return _Recordings(self, table, samples, np.cumsum([0, *lengths]), chosen)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        differences = np.array([5, -3, 700, 0, -1000])
        coded = np.where(differences >= 0, 2 * differences, -2 * differences - 1)
        content = np.concatenate([coded >> 8, coded & 255]).astype(np.uint8).tobytes()
        (folder / "audio.delta16").write_bytes(content)
        table = "digit\tspeaker\tsamples\n3\tann\t2\n7\tbob\t3\n"
        (folder / "index.tsv").write_text(table, encoding="utf-8")
        files = {"file": str(folder / "audio.delta16"), "index": str(folder / "index.tsv")}
        return {**files, "rate": 8000, "target": "digit"}


def _read_length(text: str, origin: str) -> int:
    if not text.isdecimal():
        raise DataError(f"samples is '{text}', but should be a number", origin)
    return int(text)


def _read_samples(file: FileBytes) -> Array:
    """Return the samples, int16."""
    content = np.frombuffer(file.read(), np.uint8)
    if len(content) % 2:
        raise DataError(f"it has {len(content):,} bytes, an odd number", str(file.path))
    high, low = content.reshape(2, -1)
    coded = (high.astype(np.uint16) << 8) | low
    # Sums modulo 2^16 are those of 16-bit numbers.
    return np.cumsum((coded >> 1) ^ -(coded & 1), dtype=np.uint16).view(np.int16)


class _Recordings(Examples):
    def __init__(
        self,
        dataset: DeltaAudio,
        table: CsvRows,
        samples: Array,
        bounds: Array,
        chosen: Sequence[int],
    ) -> None:
        self.dataset = dataset
        self.table = table
        self.rows = [table[index] for index in chosen]
        self.samples = samples
        self.bounds = bounds
        self.chosen = chosen

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, index: int) -> Example:
        row, place = self.rows[index], self.chosen[index]
        samples = self.samples[self.bounds[place] : self.bounds[place + 1]]
        source = Audio(samples * np.float32(1 / 32768), self.dataset.rate)
        example: dict[str, Any] = {"source": source, "target": row[self.dataset.target]}
        if self.dataset.group is not None:
            example["group"] = row[self.dataset.group]
        return example

    def origin(self, index: int) -> str:
        return self.table.origin(self.chosen[index])

    def sizes(self) -> Sequence[int]:
        lengths = np.diff(self.bounds)
        return [int(lengths[place]) for place in self.chosen]
