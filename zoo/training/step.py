"""One update of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from zoo.device.cuda_graph import GraphedFunction
from zoo.interfaces import Model, Objective, Outputs, defer_logits
from zoo.training.capture import make_capturable, pad_lengths, why_not_captured
from zoo.training.processes import Processes
from zoo.training.sharding import local

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


class LossModule(nn.Module):
    """A model and its objective as one module, which is compiled and wrapped as a whole.

    Args:
        defer: let the objective compute the loss without the logits, if it can. The parameters of
            the output layer must be available after the forward pass of the model.
    """

    def __init__(self, model: Model, objective: Objective, *, defer: bool = True) -> None:
        super().__init__()
        self.model = model
        self.objective = objective
        self.defer = defer and objective.defers_logits

    def forward(
        self, batch: Mapping[str, Tensor], weighted: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the loss; with `weighted`, the sum of its terms and their number."""
        outputs = self._outputs(batch)
        loss: Tensor = self.objective(outputs)
        if not weighted:
            return loss
        weight = self.objective.weight(outputs)
        return loss * weight, weight

    def _outputs(self, batch: Mapping[str, Tensor]) -> Outputs:
        outputs: Outputs
        if torch.compiler.is_compiling() or not self.defer:
            outputs = self.model(batch)
            return outputs
        with defer_logits(True):
            outputs = self.model(batch)
        return outputs


class Step:
    """Computes gradients and updates the weights.

    One process without accumulation computes the loss of the batch and its gradients, as a loop
    written by hand. Otherwise losses and gradients of micro-batches and processes are summed,
    each multiplied by the number of terms of its mean, and divided by the number of all terms:
    the mean over the global batch, however it is split.

    On a CUDA device the step of one process without accumulation is recorded as a CUDA graph for
    each shape of a batch, with `capture`. Lengths are then padded to a multiple of 8, so that there
    are few shapes.

    Attributes:
        lr: the learning rate of the first parameter group.
        captures: whether steps are to be recorded.
        not_captured: the reason why steps are not recorded; None if they are.
    """

    def __init__(
        self,
        module: nn.Module,
        model: Model,
        optimiser: torch.optim.Optimizer,
        processes: Processes,
        *,
        clip: float | None,
        accumulate: int,
        capture: bool = False,
    ) -> None:
        self.module = module
        self.model = model
        self.optimiser = optimiser
        self.processes = processes
        self.clip = clip
        self.weighted = accumulate > 1 or processes.world > 1
        self.parameters = [
            parameter for group in optimiser.param_groups for parameter in group["params"]
        ]
        self.initial_lr = [float(group["lr"]) for group in optimiser.param_groups]
        self.lr = self.initial_lr[0]
        self.captures = capture
        self._graphed: GraphedFunction | None = None
        self._not_captured: str | None = "train.capture is 'off', or the device is not 'cuda'"
        if capture:
            self._start_capture()

    def _start_capture(self) -> None:
        if self.weighted:
            self._not_captured = "the batch is split over processes or accumulation steps"
            return
        self._not_captured = why_not_captured(self.module, self.optimiser, self.processes.device)
        if not self._not_captured:
            make_capturable(self.optimiser)
            self._graphed = GraphedFunction(self._update, device=self.processes.device)

    @property
    def not_captured(self) -> str | None:
        return self._graphed.reason if self._graphed else self._not_captured

    def set_lr(self, factor: float) -> None:
        """Multiply the learning rate of each parameter group by the factor of the schedule."""
        for group, initial in zip(self.optimiser.param_groups, self.initial_lr, strict=True):
            lr = initial * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self.lr = self.initial_lr[0] * factor

    def __call__(self, batches: Sequence[MicroBatch], *, stop: bool = False) -> StepOutput:
        """Update the weights with the micro-batches of this process.

        Args:
            stop: whether this process received a signal to stop.
        """
        first = batches[0]
        if self.weighted or first is None:
            loss, stops = self._backward_weighted(batches, stop)
            return StepOutput(loss.detach(), self._optimise(), stops)
        if self._graphed is None:
            return StepOutput(*self._update(self._to_device(first)), None)
        loss, norm = self._graphed(pad_lengths(first, self.model))
        # The next replay overwrites the outputs of a graph.
        return StepOutput(loss.clone(), None if norm is None else norm.clone(), None)

    def _update(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Update the weights with a batch on the device; return loss and gradient norm."""
        with self.processes.autocast():
            loss = self.module(batch)
        loss.backward()
        return loss.detach(), self._optimise()

    def _optimise(self) -> Tensor | None:
        """Clip the gradients, update the weights, and return the gradient norm if it is needed."""
        norm = None
        if self.clip is not None:
            norm = local(nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True))
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

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
        loss, weight = total[0], total[1].clamp(min=1)
        gradients = [local(p.grad) for p in self.parameters if p.grad is not None]
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
                loss, weight = self.module(self._to_device(batch), True)
                return loss, weight
            generator = torch.Generator(self.processes.device).manual_seed(0)
            loss, weight = self.module(self.model.example(1, 4, generator), True)
            return loss * 0, weight * 0

    def _to_device(self, batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        device = self.processes.device
        if device.type == "cpu":
            return batch
        return {key: tensor.to(device, non_blocking=True) for key, tensor in batch.items()}
