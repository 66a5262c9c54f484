"""One update of the weights by one process."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from zoo.acceleration import accelerate
from zoo.errors import ZooError
from zoo.interfaces import Model, Objective, Outputs
from zoo.registry.component_registry import ComponentRegistry
from zoo.training.sharding import local

COMPILER_OPTIONS: Mapping[str, bool] = {"triton.coalesce_tiling_analysis": False}
"""Options of Inductor for training steps; its analysis of tiles fails with an assertion if lengths
differ (torch 2.11)."""


class LossModule(nn.Module):
    """A model and its objective as one module, which is compiled and wrapped as a whole."""

    def __init__(self, model: Model, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(
        self, batch: Mapping[str, Tensor], weighted: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the loss; with `weighted`, the sum of its terms and their number."""
        outputs: Outputs = self.model(batch)
        loss: Tensor = self.objective(outputs)
        if not weighted:
            return loss
        weight = self.objective.weight(outputs)
        return loss * weight, weight


class LocalStep:
    """Computes the gradients of a batch and updates the weights, in one process.

    Args:
        module: returns the loss of a batch, as `LossModule`.
        model: the model, which declares the batch.
        optimiser: updates the parameters of the model.
        device: the device of the model, to which batches are copied.
        clip: maximum norm of the gradient.
        autocast: returns the context of the forward pass.

    Attributes:
        lr: the learning rate of the first parameter group.
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
    ) -> None:
        self.module = module
        self.model = model
        self.optimiser = optimiser
        self.device = device
        self.clip = clip
        self.autocast = autocast
        self.parameters = [
            parameter for group in optimiser.param_groups for parameter in group["params"]
        ]
        self.initial_lr = [float(group["lr"]) for group in optimiser.param_groups]
        self.lr = self.initial_lr[0]

    def __call__(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Update the weights; return the loss, and the gradient norm if it is clipped."""
        loss = self.compute_gradients(batch)
        return loss, self.optimise()

    def compute_gradients(self, batch: Mapping[str, Tensor], scale: float = 1.0) -> Tensor:
        """Add the gradients of a batch to those of the parameters; return the loss.

        Args:
            scale: factor of the gradients, such as 1 / 4 for the mean of four batches.
        """
        with self.autocast():
            loss = self.module(self.to_device(batch))
        (loss if scale == 1.0 else loss * scale).backward()
        detached: Tensor = loss.detach()
        return detached

    def to_device(self, batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the batch on the device."""
        if self.device.type == "cpu":
            return batch
        return {key: tensor.to(self.device, non_blocking=True) for key, tensor in batch.items()}

    def optimise(self) -> Tensor | None:
        """Clip the gradients, update the weights, and return the gradient norm if it is clipped."""
        norm = self.clip_gradients()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    def clip_gradients(self) -> Tensor | None:
        """Scale the gradients so that their norm is at most `clip`; return the norm before."""
        if self.clip is None:
            return None
        return local(nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True))

    def set_lr(self, factor: float) -> None:
        """Multiply the learning rate of each parameter group by the factor of the schedule."""
        for group, initial in zip(self.optimiser.param_groups, self.initial_lr, strict=True):
            lr = initial * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self.lr = self.initial_lr[0] * factor


def training_step(
    model: Model,
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    *,
    clip: float | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    registry: ComponentRegistry | None = None,
) -> LocalStep:
    """Return the update of the weights by a batch, for a training loop of your own.

    It is the step of `train` in one process: forward pass, loss, backward pass, clipping and
    optimizer, with the accelerations of the model and those of the step, which on a GPU captures
    all of it as a CUDA graph. `accelerate` of the model alone attaches only the first.

    To accumulate gradients, call ``step.compute_gradients(batch, scale=1 / n)`` for each of n
    batches and then ``step.optimise()``. Learning rates can be set by `set_lr` or by a scheduler of
    torch. Make a new step when other parameters are trained.

    Args:
        model: a model in training mode, on its device.
        objective: the loss, which is moved to the device of the model.
        optimiser: an optimizer of parameters of the model.
        clip: maximum norm of the gradient.
        precision: dtype of the forward pass; bfloat16 by autocast, with weights in float32.
        registry: the components; by default those of all installed plugins.

    Returns:
        A function of a batch that returns its loss, and the gradient norm if it is clipped;
        ``set_lr(factor)`` multiplies the learning rates by the factor of a schedule.

    Raises:
        ZooError: if the optimizer needs a closure, as L-BFGS does.
    """
    closure = inspect.signature(optimiser.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ZooError(
            f"optimizer {type(optimiser).__name__} computes the loss several times, by a closure; "
            "write this step by hand and call zoo.accelerate(model)"
        )
    device = next(model.parameters()).device
    module = accelerate(LossModule(model, objective.to(device)), registry=registry)
    autocast = partial(autocast_to, precision, device)
    step = LocalStep(module, model, optimiser, device=device, clip=clip, autocast=autocast)
    return accelerate(step, registry=registry)


def autocast_to(precision: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Return the context of forward passes in a precision, ``float32`` or ``bfloat16``."""
    if precision == "float32":
        return contextlib.nullcontext()
    # Not that of Accelerate, which before 1.11 stays entered after an error in the block.
    return torch.autocast(device.type, torch.bfloat16)
