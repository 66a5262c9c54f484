"""Recording of attention weights and of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from zoo.interfaces import Samples


@dataclass(eq=False)
class Recorder:
    """Receives the weights and samples of an attention module while it is attached.

    Args:
        weights: receives the attention weights of a call; None if they are not needed.
        samples: receives the samples of a call; None if they are not needed.
    """

    weights: Callable[[Tensor], None] | None = None
    samples: Callable[[Samples], None] | None = None


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
        return any(recorder.samples is not None for recorder in self.recorders)

    def record(self, weights: Tensor, samples: Samples | None = None) -> None:
        """Pass the weights of this call, and its samples if there are any, to the recorders."""
        for recorder in self.recorders:
            if recorder.weights is not None:
                recorder.weights(weights)
            if recorder.samples is not None and samples is not None:
                recorder.samples(samples)


@contextmanager
def attach(recorders: dict[RecordsAttention, Recorder]) -> Iterator[None]:
    """Attach each recorder to its module inside the block."""
    for module, recorder in recorders.items():
        module.recorders.append(recorder)
    try:
        yield
    finally:
        for module, recorder in recorders.items():
            module.recorders.remove(recorder)


@contextmanager
def recording(model: nn.Module, *, gradients: bool = False) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights of every attention module inside the block.

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
