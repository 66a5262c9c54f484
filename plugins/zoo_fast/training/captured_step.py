"""Training steps that are captured as CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.acceleration.current_device import call_on, is_other_device
from zoo.plugin import Acceleration, Call, Declined
from zoo.training.local_step import LocalStep, LossModule
from zoo_fast.device.compiled_function import use_compiled
from zoo_fast.device.cuda_graph import GraphedFunction, MissingMemory
from zoo_fast.device.late_gradients import LateGradients
from zoo_fast.training.capture import MAX_GRAPHS, make_capturable, why_not_captured
from zoo_fast.training.early_transfer import EarlyTransfer
from zoo_fast.training.length_padding import LengthPadding
from zoo_fast.training.repeated_weights import repeated_weights
from zoo_fast.training.two_streams import step_on_two_streams

_MAX_CHANGES = 3
"""How often a step is captured again because options of the optimiser have changed."""


class CapturedStep(Acceleration):
    """Captures a training step as a CUDA graph for each shape of a batch, and replays it.

    Lengths are padded to a multiple of 8 where the model accepts it, so that there are few shapes
    (`LengthPadding`). The results and the random
    numbers are those of a step that is not captured. While a step is captured, the optimiser
    updates half of the parameters on a second stream. Without autocast, gradients of parameters
    are computed on that stream too, and the gradient of a weight that is used several times, as in
    a recurrence, in one product.
    """

    name: ClassVar[str] = "captured-step"
    serves: ClassVar[type[Any]] = LocalStep
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def __init__(self) -> None:
        self._constants: Any = None
        self._changes = 0
        self._reason: str | None = None
        self._is_checked = False
        self._graphed: GraphedFunction | None = None
        self._stream: torch.cuda.Stream | None = None
        self._pad: LengthPadding | None = None
        self._transfer: EarlyTransfer | None = None

    def why_not(self, target: LocalStep, device: torch.device) -> str | None:
        """Return why steps are not captured. The batch can be on another device than the step."""
        if self._graphed is not None:
            return self._graphed.reason
        if not self._is_checked:  # the conditions are tested once, before the first step
            self._reason = why_not_captured(target.module, target.optimiser, target.device)
            self._is_checked = True
        return self._reason

    def __call__(
        self, target: LocalStep, batch: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor | None] | Declined:
        if target.parameters[0].grad is not None:
            return Declined("gradients of other batches are added to")
        constants = _constants(target)
        if self._graphed is not None and constants != self._constants:
            self._graphed, self._changes = None, self._changes + 1
        if self._changes > _MAX_CHANGES:
            self._reason = "options of the optimiser change, which graphs have as constants"
            return Declined(self._reason)
        self._constants = constants
        if self._graphed is None or self._pad is None or self._transfer is None:
            make_capturable(target.optimiser)
            self._stream = torch.cuda.Stream(target.device)  # type: ignore[no-untyped-call]
            self._pad = LengthPadding(target.model)
            self._transfer = EarlyTransfer(target.device)
            self._graphed = GraphedFunction(
                partial(self._update, target), max_graphs=MAX_GRAPHS, device=target.device
            )
        call = partial(self._graphed, self._transfer.start(self._pad(batch)))
        # The batch can be on another device.
        is_other = is_other_device(target.device)
        try:
            loss, norm = call_on(target.device, call) if is_other else call()
        finally:
            self._transfer.end()
            if self._graphed.reason is not None:  # the last call: its buffers are not kept
                self._transfer = EarlyTransfer(target.device)
        # The next replay overwrites the outputs of a graph.
        return loss.clone(), None if norm is None else norm.clone()

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        import zoo

        try:
            model = zoo.compose("transformer-tiny")
        except zoo.ZooError:  # a plugin of its parts is not installed
            return
        device = next(model.parameters()).device
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        module = LossModule(model, zoo.objective("transformer-tiny"))
        step = LocalStep(module, model, optimiser, device=device, clip=1.0)
        for items, length in ((3, 5), (1, 1)):
            yield Call(step, (model.example(items, length),), method="__call__")

    def _update(
        self, target: LocalStep, batch: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        if self._stream is None or not torch.cuda.is_current_stream_capturing():
            return self._warm_up(target, batch)
        late = LateGradients(self._stream)
        try:
            with (
                late.use(),
                repeated_weights(target.module, late),
                use_compiled(compile=False),
                target.autocast(),
            ):
                loss = target.module(batch)
            late.backward(loss)
        except RuntimeError:  # the step is not captured, and runs again
            target.optimiser.zero_grad(set_to_none=True)
            raise
        norm = target.clip_gradients()
        step_on_two_streams(target.optimiser, self._stream)
        target.optimiser.zero_grad(set_to_none=True)
        return loss.detach(), norm

    def _warm_up(
        self, target: LocalStep, batch: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        """Make a step that is not captured; the last one before a capture compiles functions, so
        that nothing is compiled for a shape that occurs once."""
        is_last = self._graphed is not None and self._graphed.is_last_warmup
        # Only with graphs, which can be deleted, the step begins again.
        begins_again = self._graphed is not None and self._graphed.graphs > 0
        buffers = list(target.module.buffers()) if begins_again else []
        with use_compiled(compile=True) if is_last else nullcontext():
            before: list[Tensor] = []
            try:
                before += [buffer.clone() for buffer in buffers]
                loss = target.compute_gradients(batch)
            except torch.OutOfMemoryError as error:
                target.optimiser.zero_grad(set_to_none=True)
                for buffer, value in zip(
                    buffers, before, strict=False
                ):  # too few if one is missing
                    buffer.copy_(value)
                raise MissingMemory(str(error)) from error
            return loss, target.optimise()


def _constants(target: LocalStep) -> Any:
    """Return the values that are constants of captured steps, unlike tensors."""
    skipped = ("params", "param_names", "lr", "initial_lr", "capturable")
    return target.model.training, [
        {key: v for key, v in group.items() if key not in skipped and not isinstance(v, Tensor)}
        for group in target.optimiser.param_groups
    ]
