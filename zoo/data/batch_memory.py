"""Memory in which worker processes return batches, without a new file for each tensor."""

from __future__ import annotations

import mmap
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from zoo.data.source import Collated

_ALIGNMENT = 64


class StoredArray(NamedTuple):
    """Where an array is in the memory of a slot."""

    start: int
    shape: tuple[int, ...]
    dtype: str


class StoredShares(NamedTuple):
    """The micro-batches of an update, whose arrays are in a slot."""

    slot: int
    shares: list[Collated]
    arrays: list[dict[str, StoredArray]]


class BatchMemory:
    """Slots that forked processes share; each has the batches of one update.

    Args:
        slots: number of slots.
        size: bytes of each; memory is taken for what is written only.

    Raises:
        OSError: if the process may not reserve so much memory.
    """

    def __init__(self, slots: int, size: int) -> None:
        self._slots = [mmap.mmap(-1, size) for _ in range(slots)]
        self._size = size

    def store(self, slot: int, shares: list[Collated]) -> StoredShares | None:
        """Write batches to a slot; return None if they are too large."""
        start = 0
        stored: list[dict[str, StoredArray]] = []
        for share in shares:
            stored.append({})
            for key, tensor in (share.batch or {}).items():
                array = tensor.numpy()
                if start + array.nbytes > self._size:
                    return None
                stored[-1][key] = found = StoredArray(start, array.shape, array.dtype.str)
                self._view(slot, found)[...] = array
                start += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        empty = [share._replace(batch=None if share.batch is None else {}) for share in shares]
        return StoredShares(slot, empty, stored)

    def copy(self, stored: StoredShares, *, pin: bool) -> list[Collated]:
        """Return copies of stored batches.

        Args:
            pin: in pinned memory.
        """
        return [
            share
            if share.batch is None
            else share._replace(
                batch={key: self._copy(stored.slot, array, pin) for key, array in arrays.items()}
            )
            for share, arrays in zip(stored.shares, stored.arrays, strict=True)
        ]

    def _copy(self, slot: int, stored: StoredArray, pin: bool) -> Tensor:
        view = self._view(slot, stored)
        tensor = torch.empty_like(torch.from_numpy(view), pin_memory=pin)
        np.copyto(tensor.numpy(), view)  # torch would wake its threads, which takes longer
        return tensor

    def _view(self, slot: int, stored: StoredArray) -> np.ndarray[tuple[int, ...], np.dtype]:
        start, shape, dtype = stored
        return np.ndarray(shape, dtype, buffer=self._slots[slot], offset=start)
