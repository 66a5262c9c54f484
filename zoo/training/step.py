"""One update of the weights by all processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from zoo.acceleration import accelerate
from zoo.registry.component_registry import ComponentRegistry
from zoo.training.local_step import LocalStep, LossModule
from zoo.training.processes import Processes
from zoo.training.sharding import local
from zoo.training.whole_batch import WholeBatchGradients, compares_examples

MicroBatch = Mapping[str, Tensor] | None


class StepOutput(NamedTuple):
    """Values of a step, on the device.

    Attributes:
        loss: the mean over the global batch.
        norm: the gradient norm before clipping; None without clipping.
        stops: number of processes that received a signal to stop; None with one process.
    """

    loss: Tensor
    norm: Tensor | None
    stops: Tensor | None


class GlobalStep:
    """Computes gradients and updates the weights.

    One process without accumulation computes the loss of the batch and its gradients, as a loop
    written by hand; see `LocalStep`. Otherwise losses and gradients of micro-batches and processes
    are summed, each multiplied by the number of terms of its mean, and divided by the number of all
    terms: the mean over the global batch, however it is split. A model that compares the examples
    of a batch has the loss of the whole batch; see `WholeBatchGradients`.

    Args:
        module: returns the loss of a batch, wrapped for the processes.
        inner: the same module, which is not wrapped.
        capture: whether accelerations of the step of one process are used, such as its capture.
        registry: the components, with the accelerations.

    Attributes:
        local: the step of one process, with the optimiser and its learning rates.
        not_captured: why no acceleration of the step is used; None if they can be, or if `capture`
            is False.
    """

    def __init__(
        self,
        module: nn.Module,
        inner: LossModule,
        optimiser: torch.optim.Optimizer,
        processes: Processes,
        *,
        clip: float | None,
        accumulate: int,
        capture: bool = False,
        registry: ComponentRegistry | None = None,
    ) -> None:
        model = inner.model
        self.module = module
        self.model = model
        self.processes = processes
        self.weighted = accumulate > 1 or processes.world > 1
        self.local = LocalStep(
            module,
            model,
            optimiser,
            device=processes.device,
            clip=clip,
            autocast=processes.autocast,
        )
        self.whole: WholeBatchGradients | None = None
        if self.weighted and compares_examples(model):
            self.whole = WholeBatchGradients(module, inner, processes, self.local.to_device)
        self.not_captured: str | None = None
        if capture and accumulate > 1:
            self.not_captured = f"accumulate is {accumulate}"
        elif capture and processes.world > 1:
            self.not_captured = f"there are {processes.world} processes"
        elif capture:
            accelerate(self.local, registry=registry)

    def __call__(self, batches: Sequence[MicroBatch], *, stop: bool = False) -> StepOutput:
        """Update the weights with the micro-batches of this process.

        Args:
            stop: whether this process received a signal to stop.
        """
        first = batches[0]
        if self.whole is not None:
            loss = self.whole.compute(batches)
            stops = self.processes.sum(torch.tensor(float(stop), device=loss.device))
            return StepOutput(loss, self.local.optimise(), stops)
        if self.weighted or first is None:
            loss, stops = self._backward_weighted(batches, stop)
            return StepOutput(loss.detach(), self.local.optimise(), stops)
        return StepOutput(*self.local(first), None)

    def _backward_weighted(
        self, batches: Sequence[MicroBatch], stop: bool
    ) -> tuple[Tensor, Tensor]:
        processes = self.processes
        sums = torch.zeros(3, device=processes.device)
        sums[2] = float(stop)
        for index, batch in enumerate(batches):
            is_last = index == len(batches) - 1
            with processes.accumulate(self.module, sync=is_last):
                loss, weight = self._losses(batch)
                loss.backward()  # type: ignore[no-untyped-call]
            sums[0] += loss.detach()
            sums[1] += weight
        total = processes.sum(sums)
        loss, weight = total[0], torch.where(total[1] > 0, total[1], 1.0)
        gradients = [local(p.grad) for p in self.local.parameters if p.grad is not None]
        torch._foreach_mul_(gradients, processes.world / weight)
        return loss / weight, total[2]

    def _losses(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """Return the sum of the terms of the loss and their number.

        A process without examples computes the loss of a random batch with weight 0, because the
        backward pass of the others waits for its gradients.
        """
        with self.processes.autocast():
            loss: Tensor
            weight: Tensor
            if batch is not None:
                loss, weight = self.module(self.local.to_device(batch), True)
                return loss, weight
            generator = torch.Generator(self.processes.device).manual_seed(0)
            loss, weight = self.module(self.model.example(1, 4, generator), True)
            return loss * 0, weight * 0
