"""Recordings in a .npz file."""

from collections.abc import Mapping, Sequence

import numpy as np

from zoo import DataError
from zoo.plugin import Array, Audio, Example, Examples


class ArchivedRecordings(Examples):
    """Waveforms in arrays [L]: floats, or integers, which are divided by their largest value.

    Args:
        path: the file.
        arrays: its arrays.
        rows: name of the array and target of each example.
        rate: sampling rate in Hz.
    """

    def __init__(
        self,
        path: str,
        arrays: Mapping[str, Array],
        rows: Sequence[tuple[str, str]],
        rate: int,
    ) -> None:
        self.path = path
        self.arrays = arrays
        self.rows = rows
        self.rate = rate

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        name, target = self.rows[index]
        array = self.arrays[name]
        if array.ndim != 1 or array.dtype.kind not in "if":
            raise DataError(
                f"expected samples [L] of floats or signed integers, but found {array.dtype} "
                f"{list(array.shape)}",
                self.origin(index),
            )
        scale = -float(np.iinfo(array.dtype).min) if array.dtype.kind == "i" else 1.0
        samples = (array / scale).astype(np.float32)
        if not np.isfinite(samples).all():
            raise DataError("a sample is NaN or infinite", self.origin(index))
        return {"source": Audio(samples, self.rate), "target": target}

    def origin(self, index: int) -> str:
        return f"{self.path}[{self.rows[index][0]}]"

    def sizes(self) -> Sequence[int]:
        return [self.arrays[name].size for name, _ in self.rows]
