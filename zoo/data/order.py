"""The order of examples and their division into batches, as functions of seed and epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zoo.spec.training import Batching

Indices = NDArray[np.int64]
Lengths = NDArray[Any]


Use = Literal["order", "blocks", "transform"]
_USES: tuple[Use, ...] = ("order", "blocks", "transform")


def seed_sequence(use: Use, seed: int, epoch: int, index: int = 0) -> np.random.SeedSequence:
    """Return the seed of the random numbers of an epoch for one use.

    Those of different arguments are independent. The seed and the other numbers are separate
    arguments, because numpy gives ``(seed, epoch)`` and ``(seed, epoch, 0)`` the same generator.
    """
    return np.random.SeedSequence(seed, spawn_key=(_USES.index(use), epoch, index))


def random_generator(use: Use, seed: int, epoch: int, index: int = 0) -> np.random.Generator:
    """Return the random generator of an epoch for one use."""
    return np.random.default_rng(seed_sequence(use, seed, epoch, index))


@dataclass(frozen=True)
class Order:
    """The batches of one epoch.

    Attributes:
        rows: the rows of all batches, one batch after the other [N]; 32-bit integers if they are
            sufficient, because a dataset may have 10^8 rows.
        bounds: batch i has the rows from bounds[i] to bounds[i + 1] [batches + 1].
    """

    rows: NDArray[Any]
    bounds: Indices

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def batch(self, index: int) -> Indices:
        """Return the rows of one batch."""
        return self.rows[self.bounds[index] : self.bounds[index + 1]].astype(np.int64)


def epoch_order(
    count: int,
    lengths: Lengths | None,
    batching: Batching,
    *,
    seed: int,
    epoch: int,
    evaluation: bool = False,
) -> Order:
    """Return the batches of an epoch; each of the rows 0 to count - 1 is in exactly one.

    Args:
        lengths: the number of tokens of each row; None if they are not known, so that rows are
            not sorted and ``batching.tokens`` cannot be used.
        evaluation: keep the order of the rows.
    """
    rng = random_generator("order", seed, epoch)
    shuffle = batching.shuffle and not evaluation
    rows = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
    if shuffle:
        rng.shuffle(rows)
    group = count
    if lengths is not None and batching.buckets and not evaluation:
        group = max(1, batching.buckets * _batch_size(lengths, batching))
        rows = _sort_groups(rows, lengths, group)
    bounds = _bounds(rows, lengths, batching, group)
    if shuffle:
        rows, bounds = _shuffle_batches(rows, bounds, rng)
    return Order(rows, bounds)


def _batch_size(lengths: Lengths, batching: Batching) -> int:
    """Return the usual number of rows of a batch."""
    if batching.items is not None:
        return batching.items
    return int((batching.tokens or 0) / max(1.0, float(np.mean(lengths)) if len(lengths) else 1.0))


def _sort_groups(rows: NDArray[Any], lengths: Lengths, group: int) -> NDArray[Any]:
    """Sort each group of rows by length; rows of one length keep their order."""
    out = np.empty_like(rows)
    for start in range(0, len(rows), group):
        part = rows[start : start + group]
        out[start : start + group] = part[np.argsort(lengths[part], kind="stable")]
    return out


def _bounds(rows: NDArray[Any], lengths: Lengths | None, batching: Batching, group: int) -> Indices:
    """Return where each batch starts and ends. A batch does not extend over two groups."""
    if batching.items is not None:
        starts = np.arange(0, len(rows), batching.items)
        return np.append(starts, len(rows)).astype(np.int64)
    assert batching.tokens is not None
    assert lengths is not None
    bounds, start = [0], 0
    ordered = lengths[rows]
    while start < len(rows):
        end = min(len(rows), (start // group + 1) * group)
        # The first row limits the number of rows of a batch, the longest row limits it further.
        end = min(end, start + max(1, batching.tokens // max(1, int(ordered[start]))))
        longest = np.maximum.accumulate(ordered[start:end])
        size = np.arange(1, end - start + 1) * longest.astype(np.int64)
        start += max(1, int(np.searchsorted(size, batching.tokens, side="right")))
        bounds.append(start)
    return np.array(bounds, dtype=np.int64)


def _shuffle_batches(
    rows: NDArray[Any], bounds: Indices, rng: np.random.Generator
) -> tuple[NDArray[Any], Indices]:
    """Return the batches in random order."""
    batches = rng.permutation(len(bounds) - 1)
    parts = [rows[bounds[batch] : bounds[batch + 1]] for batch in batches]
    sizes = np.diff(bounds)[batches]
    return np.concatenate([rows[:0], *parts]), np.append(0, np.cumsum(sizes)).astype(np.int64)


def split_batch(rows: Indices, lengths: Lengths | None, shares: int) -> list[Indices]:
    """Divide the rows of a batch into shares whose numbers of rows differ by at most one.

    Args:
        lengths: the number of tokens of each row of the data; None to keep the order. Rows of
            similar length are in one share, so that shares need little padding.
    """
    if lengths is not None and shares > 1:
        rows = rows[np.argsort(lengths[rows], kind="stable")]
    return np.array_split(rows, shares)


def block_layout(
    total: int, block: int, *, seed: int, epoch: int, evaluation: bool
) -> tuple[int, int]:
    """Return where the first block starts in a stream of tokens, and the number of blocks.

    A block has ``block`` + 1 tokens, and consecutive blocks share one: the last target of a block
    is the first input of the next, so each token is predicted once. Training starts at a random
    token of the first block and leaves out the incomplete block at the end; evaluation uses all
    tokens.
    """
    if evaluation or total - 1 < 2 * block:
        return 0, max(0, -((1 - total) // block))
    offset = int(random_generator("blocks", seed, epoch).integers(0, block))
    return offset, (total - 1 - offset) // block
