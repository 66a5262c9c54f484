"""Gradients of a loss that compares all examples of a batch, which is divided into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from zoo.interfaces import Model
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.interfaces.model import Vectors
from zoo.training.local_step import LossModule
from zoo.training.processes import Processes
from zoo.training.random_state import get_random_state, set_random_state

MicroBatch = Mapping[str, Tensor] | None


def compares_examples(model: Model) -> bool:
    """Return whether the outputs of an example depend on the others of its batch."""
    schema = model.output_schema()
    return schema is not None and schema.in_batch


def calls_whole_batch(model: Model) -> bool:
    """Return whether a forward pass on a small example calls `Model.whole_batch`."""
    calls: list[Vectors] = []
    device = next(model.parameters()).device

    def record(vectors: Vectors) -> Vectors:
        calls.append(vectors)
        return vectors

    model.complete_batch = record
    try:
        with torch.no_grad(), torch.random.fork_rng(), evaluation_mode(model):
            generator = torch.Generator(device).manual_seed(0)
            model(model.example(2, 4, generator))
    finally:
        model.complete_batch = None
    return bool(calls)


class WholeBatchGradients:
    """Computes the gradients of the loss of a whole batch, as if it were not divided.

    Each process has the vectors of all examples: its own with a graph, those of others by an
    all-gather without one (Radford et al. 2021). The loss of all is computed in every process, and
    the gradients of the vectors of all processes are summed.

    With accumulation, the vectors of all micro-batches are computed first and their graphs are
    freed. Then each micro-batch is computed again, with the same random numbers, and the backward
    pass is that of the whole loss through its own vectors (Gao et al. 2021, "Scaling Deep
    Contrastive Learning Batch Size under Memory Limited Setup").

    Args:
        module: returns the loss of a batch, wrapped for the processes.
        inner: the same module, which is not wrapped.
        to_device: copies a batch to the device.
    """

    def __init__(
        self,
        module: nn.Module,
        inner: LossModule,
        processes: Processes,
        to_device: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
    ) -> None:
        self.module = module
        self.inner = inner
        self.model = inner.model
        self.processes = processes
        self.to_device = to_device
        self._complete = torch.compiler.disable(self._complete_part)  # type: ignore[no-untyped-call]
        self._is_first_pass = False
        self._index = 0
        self._is_empty = False
        self._own: list[Vectors] = []
        self._all: Mapping[str, list[list[Tensor]]] = {}

    def compute(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Add the gradients of a batch to those of the parameters; return its loss.

        Args:
            batches: the micro-batches of this process; None for one without examples.
        """
        with self._completed():
            states = self._compute_vectors(batches) if len(batches) > 1 else []
            loss = torch.zeros((), device=self.processes.device)
            for self._index, batch in enumerate(batches):
                if states:
                    set_random_state(states[self._index])
                is_last = self._index == len(batches) - 1
                with self.processes.accumulate(self.module, sync=is_last):
                    loss = self._loss(self.module, batch)
                    (loss / len(batches)).backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    @contextmanager
    def _completed(self) -> Iterator[None]:
        """Complete the vectors of parts in the block."""
        self._own, self._all = [], {}
        self.model.complete_batch = self._complete
        try:
            yield
        finally:
            self.model.complete_batch = None
            self._own, self._all = [], {}

    def _compute_vectors(self, batches: Sequence[MicroBatch]) -> list[Mapping[str, Tensor]]:
        """Gather the vectors of all micro-batches; return the random states before each.

        Gradients stay enabled, because operations may take other random numbers without them.
        Buffers that the forward pass changes are restored.
        """
        buffers = [(buffer, buffer.clone()) for buffer in self.inner.buffers()]
        states: list[Mapping[str, Tensor]] = []
        self._is_first_pass = True
        try:
            for batch in batches:
                states.append(get_random_state())
                self._loss(self.inner, batch)
        finally:
            self._is_first_pass = False
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        self._all = self._gather(self._own)
        return states

    def _loss(self, module: nn.Module, batch: MicroBatch) -> Tensor:
        """Return the loss, to which a micro-batch without examples adds no vectors."""
        self._is_empty = batch is None
        if batch is None:
            generator = torch.Generator(self.processes.device).manual_seed(0)
            batch = self.model.example(1, 4, generator)
        with self.processes.autocast():
            loss: Tensor = module(self.to_device(batch))
        return loss

    def _complete_part(self, vectors: Vectors) -> Vectors:
        own = {key: rows[:0] for key, rows in vectors.items()} if self._is_empty else vectors
        detached = {key: rows.detach() for key, rows in own.items()}
        if self._is_first_pass:
            self._own.append(detached)
            return vectors
        gathered = self._all or self._gather([detached])
        # The loss is divided by the number of micro-batches, and gradients by that of processes.
        factor = self.processes.world * len(gathered[next(iter(gathered))][0])
        whole = {}
        for key, parts in gathered.items():
            rows = own.get(key, next(iter(own.values()))[:0])
            parts = [list(of_process) for of_process in parts]
            fixed = parts[self.processes.rank][self._index]
            parts[self.processes.rank][self._index] = fixed + (rows - rows.detach()) * factor
            whole[key] = torch.cat([each for of_process in parts for each in of_process])
        return whole

    def _gather(self, own: Sequence[Vectors]) -> dict[str, list[list[Tensor]]]:
        """Return the vectors of each micro-batch of each process, by key."""
        counts = self.processes.gather([{k: len(rows) for k, rows in each.items()} for each in own])
        keys = sorted({key for each in counts for parts in each for key in parts if parts[key]})
        empty = next(iter(own[0].values()))[:0]
        gathered = {}
        for key in keys:
            sizes = [[parts.get(key, 0) for parts in each] for each in counts]
            rows = torch.cat([each.get(key, empty) for each in own])
            each_rows = self.processes.gather_rows(rows, max(map(sum, sizes)))
            gathered[key] = [
                list(torch.split(all_rows[: sum(size)], size))
                for all_rows, size in zip(each_rows, sizes, strict=True)
            ]
        return gathered
