"""Recording of attention weights and of samples."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces import Alignment, Samples


@dataclass(eq=False)
class Recorder:
    """Receives the weights and samples of an attention module while it is attached.

    Args:
        weights: receives the attention weights of a call; None if they are not needed.
        samples: receives the samples of a call; None if they are not needed.

    Attributes:
        thread: the thread whose calls are recorded; all if it is None.
    """

    weights: Callable[[Tensor], None] | None = None
    samples: Callable[[Samples], None] | None = None
    thread: int | None = field(default=None, init=False)


class RecordsAttention(nn.Module):
    """Base of modules that compute attention weights and pass them to recorders."""

    def __init__(self) -> None:
        super().__init__()
        self.recorders: list[Recorder] = []

    @property
    def stochastic_part(self) -> nn.Module | None:
        """The part that samples in training and passes no gradient; None if no part does."""
        return None

    @property
    def is_recording_samples(self) -> bool:
        """Whether a recorder needs the samples of a stochastic part."""
        return any(recorder.samples is not None for recorder in self._recorders_of_thread())

    def record(self, weights: Tensor, samples: Samples | None = None) -> None:
        """Pass the weights of this call, and its samples if there are any, to the recorders."""
        for recorder in self._recorders_of_thread():
            if recorder.weights is not None:
                recorder.weights(weights)
            if recorder.samples is not None and samples is not None:
                recorder.samples(samples)

    def _recorders_of_thread(self) -> list[Recorder]:
        if torch.compiler.is_compiling() or not self.recorders:
            return self.recorders
        own = threading.get_ident()
        return [each for each in self.recorders.copy() if each.thread in (None, own)]


@contextmanager
def attach(recorders: dict[RecordsAttention, Recorder]) -> Iterator[None]:
    """Attach each recorder to its module inside the block, for the calls of this thread."""
    thread = None if torch.compiler.is_compiling() else threading.get_ident()
    for module, recorder in recorders.items():
        recorder.thread = thread
        module.recorders.append(recorder)
    try:
        yield
    finally:
        for module, recorder in recorders.items():
            module.recorders.remove(recorder)


@contextmanager
def recording(model: nn.Module, *, gradients: bool = False) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights of every attention module inside the block, in this thread.

    Yields a dictionary from module name to the weights of each call: [B, H, T, S], or [B, H, E]
    over the edges of a graph. Weights are detached unless ``gradients`` is true. Attention
    is not accelerated while weights are recorded.
    """
    found = {name: m for name, m in model.named_modules() if isinstance(m, RecordsAttention)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}

    def keep(calls: list[Tensor]) -> Callable[[Tensor], None]:
        return lambda weights: calls.append(weights if gradients else weights.detach())

    with attach({m: Recorder(weights=keep(log[name])) for name, m in found.items()}):
        yield log


@dataclass(frozen=True)
class SampleLog:
    """The samples of each stochastic part, call by call: [B, H, T], differentiable."""

    calls: dict[str, list[Samples]]

    def total(self) -> Samples | None:
        """Concatenate the calls and sum over heads and parts: [B, T], None without samples.

        Every part must have processed the same number of queries, one per target step.
        """
        sampled = [calls for calls in self.calls.values() if calls]
        if not sampled:
            return None
        logprobs = [torch.cat([c.logprob.sum(dim=1) for c in calls], dim=1) for calls in sampled]
        entropies = [torch.cat([c.entropy.sum(dim=1) for c in calls], dim=1) for calls in sampled]
        return Samples(torch.stack(logprobs).sum(dim=0), torch.stack(entropies).sum(dim=0))


def find_stochastic(module: nn.Module) -> nn.Module | None:
    """Return the first stochastic part inside the module, such as an alignment, or None."""
    for inner in module.modules():
        if isinstance(inner, RecordsAttention) and inner.stochastic_part is not None:
            return inner.stochastic_part
    return None


def forbid_stochastic(part: nn.Module, what: str) -> None:
    """Raise ZooError if the part has a stochastic part, which would not be trained."""
    found = find_stochastic(part)
    if found is not None:
        name, hint = type(found).__name__, "use another part"
        if isinstance(found, Alignment):
            name = f"alignment '{found.name}'"
            hint = "set straight_through: true or use another alignment"
        raise ZooError(
            f"{name} samples in training, but the samples of {what} are not passed to the "
            f"objective, so the part would get no gradient; {hint}"
        )


@contextmanager
def record_samples(model: nn.Module) -> Iterator[SampleLog]:
    """Record the samples of every stochastic part of the model inside the block, in this thread."""
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, RecordsAttention) and module.stochastic_part is not None
    }
    log = SampleLog({name: [] for name in found})
    with attach({m: Recorder(samples=log.calls[name].append) for name, m in found.items()}):
        yield log
