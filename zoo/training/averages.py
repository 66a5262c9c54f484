"""Averages of weights over steps and over checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorReader
from zoo.training.sharding import local


class MovingAverage:
    r"""Exponential moving average of the parameters and the running statistics of a model.

    .. math:: a_t = d_t \, a_{t-1} + (1 - d_t) \, w_t, \quad d_t = \min(d, (1 + t) / (10 + t))

    so that the first averages do not depend on the initial weights. The running statistics of batch
    normalisation are averaged too, because those of the current weights do not fit the averages;
    other buffers are not.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.named_weights = {**dict(model.named_parameters()), **_running_statistics(model)}
        self.weights: list[Tensor] = [local(w.detach()) for w in self.named_weights.values()]
        self.averages = [weight.clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights of a step; the first step is 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.averages, self.weights, 1 - decay)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Use the averages as weights of the model inside the block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        weights = [weight.clone() for weight in self.weights]
        torch._foreach_copy_(self.weights, self.averages)
        torch._foreach_copy_(self.averages, weights)


def _running_statistics(model: nn.Module) -> dict[str, Tensor]:
    """Return the running means and variances of a model by name."""
    return {
        f"{prefix}.{name}" if prefix else name: buffer
        for prefix, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._NormBase)
        for name, buffer in module.named_buffers(recurse=False)
        if buffer.is_floating_point()
    }


def average_checkpoints(models: Mapping[Path, TensorReader]) -> dict[str, Tensor]:
    """Return the mean of the weights of several models; other tensors are those of the last.

    Sums are computed in float64.

    Args:
        models: the tensors of models by checkpoint.

    Raises:
        ZooError: if names, shapes or dtypes are not the same in all of them.
    """
    readers = list(models.values())
    for path, reader in models.items():
        if reader.metas != readers[-1].metas:
            raise ZooError(f"{path} cannot be averaged: its tensors are those of another model")
    means: dict[str, Tensor] = {}
    for name in readers[-1].metas:
        last = readers[-1].read(name)
        if last.is_floating_point() and len(readers) > 1:
            total = sum(reader.read(name).double() for reader in readers)
            assert isinstance(total, Tensor)
            last = (total / len(readers)).to(last.dtype)
        means[name] = last
    return means
