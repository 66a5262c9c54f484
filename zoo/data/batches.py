"""Batches of a dataset for a model."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

from torch import Tensor

from zoo.data.encoding import BadData, ProgressFunction, Skipped
from zoo.data.kept_examples import keep_decoded
from zoo.data.loading import LoadedUpdate, Loader, LoadingJob
from zoo.data.order import Lengths, Order, epoch_order, split_batch
from zoo.data.reader import ExampleReader
from zoo.data.selection import example_source, table_source
from zoo.data.source import BatchSource
from zoo.data.token_cache import encode_examples, fingerprint
from zoo.data.torch_dataset import EncodedDataset, OrderSampler
from zoo.errors import DataError
from zoo.interfaces import Dataset, Examples, Model, Preprocessor
from zoo.registry.blueprint import Blueprint
from zoo.spec.training import Batching

MAX_WORKERS = 8
"""Largest number of processes that is chosen by default."""


@dataclass(frozen=True)
class Update:
    """The examples of one update of the weights, as far as this process computes it.

    Attributes:
        index: position in the epoch.
        batches: the micro-batches of this process, on the CPU; None for a micro-batch without
            examples.
        items: number of examples of the whole update, over all processes.
        tokens: number of tokens of the whole update without padding, of all keys together; the
            number of examples if lengths are not known.
        examples: the indices in the dataset of the examples of ``batches``, in the same order.
    """

    index: int
    batches: list[dict[str, Tensor] | None]
    items: int
    tokens: int
    examples: list[int]
    origin: Callable[[int], str] = field(repr=False)

    def origins(self) -> list[str]:
        """Return where the examples of this process are."""
        return [self.origin(index) for index in self.examples]


class _EpochRequest(NamedTuple):
    """The first update of an epoch to make, and how updates are divided."""

    epoch: int
    start: int
    rank: int
    world: int
    accumulate: int


class Batches:
    """The batches of a dataset, in an order that depends on seed and epoch only.

    Attributes:
        examples: the open dataset.
        skipped: the number of examples that were left out, by reason.
    """

    def __init__(
        self,
        reader: ExampleReader,
        source: BatchSource,
        batching: Batching,
        skipped: Skipped,
        loader: Loader,
    ) -> None:
        self.examples: Examples = reader.examples
        self._reader = reader
        self._source = source
        self._batching = batching
        self._skipped = skipped
        self._loader = loader
        self._orders: dict[int, Order] = {}
        self._continues = bool(loader.workers) and not reader.evaluation
        self._stream: tuple[_EpochRequest | None, Iterator[LoadedUpdate]] = (None, iter(()))
        self._only: tuple[_EpochRequest, list[int], LoadedUpdate] | None = None

    @property
    def skipped(self) -> dict[str, int]:
        return dict(self._skipped.counts)

    def skipped_state(self) -> dict[str, Any]:
        """Return the examples that were left out so far as JSON values."""
        return {"counts": self.skipped, "seen": sorted(self._skipped.seen)}

    def restore_skipped(self, state: Mapping[str, Any]) -> None:
        """Add what `skipped_state` returned to what was left out when the data was opened."""
        counts = self._skipped.counts
        for reason, count in state.get("counts", {}).items():
            counts[reason] = max(count, counts.get(reason, 0))
        self._skipped.seen.update(state.get("seen", ()))

    @property
    def failure(self) -> str | None:
        """Why worker processes could not go on, such as one that was killed; None if they can."""
        return self._loader.failure

    @property
    def counts_tokens(self) -> bool:
        """Whether `Update.tokens` are tokens; otherwise they are examples."""
        return self._source.counts_tokens

    def updates(self, epoch: int) -> int:
        """Return the number of updates of an epoch."""
        items = self._batching.items
        if items is not None:
            return -(-self._source.count(epoch) // items)
        return len(self._order(epoch))

    def epoch(
        self, epoch: int, *, start: int = 0, rank: int = 0, world: int = 1, accumulate: int = 1
    ) -> Iterator[Update]:
        """Yield the updates of an epoch.

        Args:
            start: position of the first update.
            rank, world: index and number of the processes; each gets its share of every update.
            accumulate: number of micro-batches of each process and update.
        """
        order = self._order(epoch)
        request = _EpochRequest(epoch, start, rank, world, accumulate)
        for loaded in self._only_batch(request, order) or self._load(request, len(order)):
            for share in loaded.shares:
                for index, error in share.errors:
                    self._skipped.add(index, error)
            rows = order.batch(loaded.position)
            yield Update(
                index=loaded.position,
                batches=[share.batch for share in loaded.shares],
                items=len(rows),
                tokens=self._source.tokens(rows),
                examples=[index for share in loaded.shares for index in share.examples],
                origin=self.examples.origin,
            )

    @cached_property
    def dataset(self) -> EncodedDataset:
        """The encoded examples as a dataset of PyTorch, for training loops of other libraries::

        data = batches.dataset
        loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=data.collate)
        """
        return EncodedDataset(self._source, fail=self._skipped.bad_data == "fail")

    def sampler(self, *, rank: int = 0, world: int = 1) -> OrderSampler:
        """Return the order of `epoch` as a batch sampler of `dataset`, for a DataLoader::

            data = batches.dataset
            loader = DataLoader(data, batch_sampler=batches.sampler(), collate_fn=data.collate)

        Call its ``set_epoch`` before each epoch.

        Args:
            rank, world: index and number of the processes; each gets its share of every batch.
        """
        return OrderSampler(self.dataset, self._order, self._split_lengths, rank=rank, world=world)

    @property
    def _split_lengths(self) -> Lengths | None:
        """The lengths by which a batch is divided; None to keep the order."""
        return None if self._reader.evaluation else self._source.lengths

    def _only_batch(self, request: _EpochRequest, order: Order) -> list[LoadedUpdate] | None:
        """Return the batch of an epoch with one batch of arrays, such as a whole graph, which is
        made once; None if there are several, or random transforms."""
        if self._reader.preprocessors or len(order) != 1 or request.start:
            return None
        request, rows = request._replace(epoch=0), order.batch(0).tolist()
        if self._only is None or self._only[:2] != (request, rows):
            (loaded,) = self._loader.load_in_process(itertools.islice(self._jobs(request), 1))
            self._only = request, rows, loaded
        return [self._only[2]]

    def _load(self, request: _EpochRequest, end: int) -> Iterator[LoadedUpdate]:
        """Yield the batches of an epoch; workers go on with those of the next epoch."""
        (following, stream), self._stream = self._stream, (None, iter(()))
        if request != following:
            stream = self._loader.load(self._jobs(request))
        yield from itertools.islice(stream, end - request.start)
        if self._continues:
            self._stream = (request._replace(epoch=request.epoch + 1, start=0), stream)

    def _jobs(self, request: _EpochRequest) -> Iterator[LoadingJob]:
        """Yield the jobs of an epoch, then those of the epochs after it, if they are continued."""
        start, shares = request.start, request.world * request.accumulate
        for epoch in itertools.count(request.epoch):
            order = self._order(epoch)
            for index in range(start, len(order)):
                rows = split_batch(order.batch(index), self._split_lengths, shares)
                yield LoadingJob(index, epoch, rows[request.rank :: request.world])
            start = 0
            if not self._continues:
                return

    def _order(self, epoch: int) -> Order:
        if epoch not in self._orders:
            while len(self._orders) > 1:  # the workers may be an epoch ahead
                del self._orders[min(self._orders)]
            self._orders[epoch] = epoch_order(
                self._source.count(epoch),
                self._source.lengths,
                self._batching,
                seed=self._reader.seed,
                epoch=epoch,
                evaluation=self._reader.evaluation,
            )
        return self._orders[epoch]

    def references(self, index: int) -> list[Any]:
        """Return the values of the field "target" of an example: one, or several references."""
        value = self.examples[index].get("target")
        if value is None:
            return []
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def close(self) -> None:
        """End the worker processes."""
        self._loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_batches(
    blueprint: Blueprint[Dataset],
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    batching: Batching,
    *,
    seed: int,
    evaluation: bool = False,
    bad_data: BadData = "fail",
    workers: int | None = None,
    pin: bool = False,
    progress: ProgressFunction | None = None,
) -> Batches:
    """Open a dataset and return its batches for a model.

    Texts and labels are encoded now, also lists of them; images, audio and arrays when their batch
    is loaded. A training keeps decoded images and recordings in memory, as far as they fit.

    Args:
        blueprint: the dataset.
        preprocessors: by key of the batch.
        evaluation: keep the order of the dataset.
        bad_data: raise DataError for an example that cannot be used, or leave it out.
        workers: number of processes that make batches; 0: this process. Default: this process for
            texts and labels, whose batches take little time, and without `pin`; otherwise one for
            each core, up to 8.
        pin: copy batches to pinned memory, for fast transfer to a GPU.
        progress: called while texts are encoded.

    Raises:
        DataError: if files are missing, or no example is left.
        ZooError: if the fields do not fit the batch of the model or the batching.
    """
    dataset = blueprint.build()
    examples = dataset.open(evaluation=evaluation)
    reader = ExampleReader(
        dataset, examples, model, preprocessors, seed=seed, evaluation=evaluation
    )
    skipped = Skipped(bad_data)
    if reader.fits_table():
        empty = batching.block is not None
        name = fingerprint(blueprint, model, reader, skipped, empty=empty)
        encoded = encode_examples(reader, skipped, fingerprint=name, empty=empty, progress=progress)
        source = table_source(reader, encoded, batching, skipped)
        workers = workers or 0
    else:
        if workers is None:
            workers = min(MAX_WORKERS, os.cpu_count() or 1) if pin else 0
        if not evaluation:
            reader.examples = keep_decoded(examples, workers)
        source = example_source(reader, batching, skipped)
    if not source.count(0):
        reasons = "; ".join(f"{count:,}: {why}" for why, count in skipped.counts.items())
        found = f"all are skipped ({reasons})" if reasons else "it is empty"
        raise DataError(f"dataset '{dataset.name}' has no examples to use: {found}")
    loader = Loader(source, fail=bad_data == "fail", workers=workers, pin=pin)
    return Batches(reader, source, batching, skipped, loader)
