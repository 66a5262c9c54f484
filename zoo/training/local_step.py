"""One update of the weights by one process, recorded as a CUDA graph if it is possible."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from zoo.device.cuda_graph import GraphedFunction
from zoo.device.late_gradients import LateGradients
from zoo.interfaces import Model, Objective, Outputs, defer_logits
from zoo.training.capture import MAX_GRAPHS, make_capturable, pad_lengths, why_not_captured
from zoo.training.sharding import local
from zoo.training.two_streams import step_on_two_streams


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


class LocalStep:
    """Computes the gradients of a batch and updates the weights, in one process.

    On a CUDA device the step is recorded as a CUDA graph for each shape of a batch, with `capture`.
    Lengths are then padded to a multiple of 8, so that there are few shapes. It has the results of
    a step that is not recorded, with the same random numbers.

    Args:
        module: returns the loss of a batch, as `LossModule`.
        model: the model, which declares the batch.
        optimiser: updates the parameters of the model.
        device: the device of the model, to which batches are copied.
        clip: maximum norm of the gradient.
        autocast: returns the context of the forward pass.
        capture: whether to record steps, if it is possible.

    Attributes:
        lr: the learning rate of the first parameter group.
        captures: whether steps are to be recorded.
    """

    def __init__(
        self,
        module: nn.Module,
        model: Model,
        optimiser: torch.optim.Optimizer,
        *,
        device: torch.device,
        clip: float | None = None,
        autocast: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
        capture: bool = True,
    ) -> None:
        self.module = module
        self.model = model
        self.optimiser = optimiser
        self.device = device
        self.clip = clip
        self.autocast = autocast
        self.captures = capture and device.type == "cuda"
        self.parameters = [
            parameter for group in optimiser.param_groups for parameter in group["params"]
        ]
        self.initial_lr = [float(group["lr"]) for group in optimiser.param_groups]
        self.lr = self.initial_lr[0]
        self._graphed: GraphedFunction | None = None
        self._stream: torch.cuda.Stream | None = None
        self._complete: set[tuple[tuple[str, torch.Size], ...]] = set()
        self._reason = why_not_captured(module, optimiser, device) if capture else "it is off"
        if self._reason is None:
            make_capturable(optimiser)
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self._graphed = GraphedFunction(self._update, max_graphs=MAX_GRAPHS, device=device)

    @property
    def not_captured(self) -> str | None:
        """The reason why steps are not recorded; None if they are."""
        return self._graphed.reason if self._graphed else self._reason

    def set_lr(self, factor: float) -> None:
        """Multiply the learning rate of each parameter group by the factor of the schedule."""
        for group, initial in zip(self.optimiser.param_groups, self.initial_lr, strict=True):
            lr = initial * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self.lr = self.initial_lr[0] * factor

    def __call__(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Update the weights; return the loss, and the gradient norm if it is clipped."""
        if self._graphed is None:
            return self._update(self.to_device(batch))
        loss, norm = self._graphed(self._pad(batch))
        # The next replay overwrites the outputs of a graph.
        return loss.clone(), None if norm is None else norm.clone()

    def to_device(self, batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the batch on the device."""
        if self.device.type == "cpu":
            return batch
        return {key: tensor.to(self.device, non_blocking=True) for key, tensor in batch.items()}

    def optimise(self) -> Tensor | None:
        """Clip the gradients, update the weights, and return the gradient norm if it is clipped."""
        norm = None
        if self.clip is not None:
            norm = local(nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True))
        if self._stream is not None and torch.cuda.is_current_stream_capturing():
            step_on_two_streams(self.optimiser, self._stream)
        else:
            self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    def _pad(self, batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Pad the lengths; what was found for a shape is kept, because the schema takes long."""
        shapes = tuple((key, tensor.shape) for key, tensor in batch.items())
        if shapes in self._complete:
            return batch
        padded = pad_lengths(batch, self.model)
        if all(padded[key] is tensor for key, tensor in batch.items()):
            self._complete.add(shapes)
        return padded

    def _update(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        if self._stream is None or not torch.cuda.is_current_stream_capturing():
            with self.autocast():
                loss = self.module(batch)
            loss.backward()
            return loss.detach(), self.optimise()
        late = LateGradients(self._stream)
        try:
            with late.use(), self.autocast():
                loss = self.module(batch)
            late.backward(loss)
        except RuntimeError:  # the step is not recorded, and runs again
            self.optimiser.zero_grad(set_to_none=True)
            raise
        return loss.detach(), self.optimise()
