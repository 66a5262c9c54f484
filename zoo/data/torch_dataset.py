"""Encoded examples and the order of batches for a DataLoader of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset, Sampler

from zoo.data.order import Lengths, Order, split_batch
from zoo.data.source import BatchSource
from zoo.errors import DataError

Item = dict[str, Tensor] | None
"""The tensors of one example, without padding and batch dimension; None if it is skipped."""


class EncodedDataset(TorchDataset[Item]):
    """The encoded examples of a dataset, for a DataLoader with `collate` as its collate_fn.

    Args:
        source: makes the examples and batches.
        fail: raise DataError for an example that cannot be used; otherwise it is None, which
            `collate` leaves out.
    """

    def __init__(self, source: BatchSource, *, fail: bool) -> None:
        self.source = source
        self.fail = fail
        # In shared memory, so that persistent workers get the epochs that are set later.
        self._epoch = torch.zeros(1, dtype=torch.int64, device="cpu")
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that random transforms depend on."""
        self._epoch[0] = epoch

    def __len__(self) -> int:
        return self.source.count(int(self._epoch))

    def __getitem__(self, row: int) -> Item:
        if not 0 <= row < len(self):
            raise IndexError(f"example {row} does not exist; there are {len(self)}")
        try:
            arrays = self.source.example(row, int(self._epoch))
        except DataError:
            if self.fail:
                raise
            return None
        return {key: torch.tensor(array, device="cpu") for key, array in arrays.items()}

    def collate(self, items: Sequence[Item]) -> dict[str, Tensor]:
        """Return the batch of some examples: padded and stacked, with a mask if the model has it.

        Raises:
            DataError: if all examples are skipped.
        """
        used = [item for item in items if item is not None]
        if not used:
            raise DataError("no example of this batch can be used")
        return self.source.stack([{k: np.asarray(t) for k, t in item.items()} for item in used])


class OrderSampler(Sampler[list[int]]):
    """The rows of each batch of an epoch, for the parameter batch_sampler of a DataLoader.

    Args:
        dataset: its epoch is set together with that of the sampler.
        order: returns the batches of an epoch.
        lengths: the number of tokens of each row, by which a batch is divided; None to keep the
            order.
        rank, world: index and number of the processes; each gets its share of every batch. If a
            batch has fewer rows than processes, its first row is repeated.
    """

    def __init__(
        self,
        dataset: EncodedDataset,
        order: Callable[[int], Order],
        lengths: Lengths | None,
        *,
        rank: int,
        world: int,
    ) -> None:
        self.dataset = dataset
        self.order = order
        self.lengths = lengths
        self.rank = rank
        self.world = world
        self.epoch = 0

    @property
    def sampler(self) -> OrderSampler:
        """The object whose `set_epoch` Lightning calls."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self.epoch = epoch
        self.dataset.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.order(self.epoch))

    def __iter__(self) -> Iterator[list[int]]:
        self.dataset.set_epoch(self.epoch)
        order = self.order(self.epoch)
        for index in range(len(order)):
            rows = order.batch(index)
            share = split_batch(rows, self.lengths, self.world)[self.rank]
            yield (share if len(share) else rows[:1]).tolist()
