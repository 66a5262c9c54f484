"""Shared by the benchmarks of training steps: our step, its check and its bound."""

from __future__ import annotations

import contextlib
import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import zoo
from zoo import LocalStep, LossModule
from zoo_lab.bench.benchmark import Benchmark, Bound

LR = 1e-5
STEPS = 4
"""Steps whose losses are compared; the first three are not captured."""
TOLERANCE = 1e-2
"""Largest relative error of gradients and losses, besides that of the dtype."""
_BYTES_OF_ADAMW = 7
"""AdamW reads weight, gradient and two moments, and writes all but the gradient."""

Batch = Mapping[str, Tensor]


class TrainingBenchmark(Benchmark):
    """A training step: loss, gradients and AdamW, captured as a CUDA graph where that is possible.

    A subclass sets the attributes in `prepare` by `prepare_step`.
    """

    model: zoo.Model
    objective: Any
    batch_on_device: Batch
    device: torch.device
    step: LocalStep

    def prepare_step(self, model: zoo.Model, objective: Any, batch: Batch) -> None:
        """Create the measured step."""
        self.device = next(model.parameters()).device
        self.model, self.objective = model.train(), objective.to(self.device)
        self.batch_on_device = {key: tensor.to(self.device) for key, tensor in batch.items()}
        self.step = self.build_step(self.model, enabled=True)

    def build_step(self, model: zoo.Model, *, enabled: bool) -> LocalStep:
        """Return a step that trains a model, accelerated or on the reference path."""
        module = zoo.accelerate(LossModule(model, self.objective), enabled=enabled)
        step = LocalStep(module, model, adamw(model), device=self.device, autocast=self.autocast)
        return zoo.accelerate(step, enabled=enabled)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context of the forward pass."""
        return contextlib.nullcontext()

    def run(self) -> None:
        self.step(self.batch_on_device)

    @abstractmethod
    def checked_batch(self) -> Batch:
        """Return a batch for the check that is small enough for the reference path."""

    def check(self) -> None:
        """Compare with the reference path, without dropout: the gradients of one batch, and the
        losses of steps, the last of which is captured.

        The error of gradients is at most 1 %, besides 1.5 times that of the reference path in the
        dtype of the measurement. Of models that sample, only the losses are compared.
        """
        model, batch = without_dropout(self.model), self.checked_batch()
        expected = self._gradients(model, batch, exact=True)
        if not self._is_random(model, batch):
            rounded = self._gradients(model, batch)
            found = self._gradients(model, batch, enabled=True)
            error = _relative_error(found, expected)
            largest = TOLERANCE + 1.5 * _relative_error(rounded, expected)
            assert error <= largest, f"gradients differ by {error:.1e}, allowed are {largest:.1e}"
        losses = [self._losses(model, batch, enabled=enabled) for enabled in (True, False)]
        size = abs(losses[1][0])
        differences = [abs(a - b) for a, b in zip(*losses, strict=True)]
        largest = (10 if self._is_random(model, batch) else 1) * TOLERANCE * size
        assert max(differences) <= largest, f"losses {losses[0]} differ from {losses[1]}"

    def _gradients(
        self, model: zoo.Model, batch: Batch, *, exact: bool = False, enabled: bool = False
    ) -> Tensor:
        """Return all gradients as one vector; `exact` are those in float32."""
        model = copy.deepcopy(model)
        module = LossModule(model.float() if exact else model, self.objective)
        zoo.accelerate(module, enabled=enabled)
        torch.manual_seed(0)
        with contextlib.nullcontext() if exact else self.autocast():
            loss = module(_floats(batch) if exact else batch)
        loss.backward()
        return torch.cat(
            [p.grad.float().flatten() for p in model.parameters() if p.grad is not None]
        )

    def _losses(self, model: zoo.Model, batch: Batch, *, enabled: bool) -> list[float]:
        step = self.build_step(copy.deepcopy(model), enabled=enabled)
        torch.manual_seed(0)
        return [float(step(batch)[0]) for _ in range(STEPS)]

    @torch.no_grad()
    def _is_random(self, model: zoo.Model, batch: Batch) -> bool:
        """Whether the loss depends on the random seed, although there is no dropout."""
        module, losses = LossModule(model, self.objective), []
        for seed in (0, 1):
            torch.manual_seed(seed)
            losses.append(float(module(batch)))
        return abs(losses[0] - losses[1]) > 1e-6 * abs(losses[0])

    def bound(self) -> Bound:
        """The products of one step on the reference path, weights and moments, and the batch."""
        model = copy.deepcopy(self.model)
        module = zoo.accelerate(LossModule(model, self.objective), enabled=False)
        with FlopCounterMode(display=False) as counter:
            module(self.batch_on_device).backward()
        return Bound(bytes=self.least_bytes(), operations=counter.get_total_flops())

    def least_bytes(self) -> float:
        """Return the bytes of AdamW, and of the batch."""
        weights = sum(p.nbytes for p in self.model.parameters() if p.requires_grad)
        inputs = sum(tensor.nbytes for tensor in self.batch_on_device.values())
        return _BYTES_OF_ADAMW * weights + inputs


def adamw(module: nn.Module) -> torch.optim.Optimizer:
    """Return the optimiser of all measured steps."""
    return torch.optim.AdamW(module.parameters(), lr=LR, fused=True)


def make_step(loss: Callable[[], Tensor], module: nn.Module) -> Callable[[], None]:
    """Return a function that makes a step of a peer, given the function that returns its loss."""
    optimiser = adamw(module)

    def step() -> None:
        loss().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def without_dropout(model: zoo.Model) -> zoo.Model:
    """Return a copy of a model whose dropout modules drop nothing."""
    copied = copy.deepcopy(model)
    for module in copied.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return copied


def _floats(batch: Batch) -> Batch:
    return {k: v.float() if v.is_floating_point() else v for k, v in batch.items()}


def _relative_error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape, "other parameters have gradients"
    return float((found - expected).norm() / expected.norm())
