"""Recording of attention weights and of sampled positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from zoo.interfaces import Samples


@dataclass(eq=False)
class Listener:
    """Receives what the attention modules of a model compute while it is attached.

    Args:
        weights: receives the attention weights of a call; None if they are not needed.
        samples: receives the sampled positions of a call; None if they are not needed.
    """

    weights: Callable[[Tensor], None] | None = None
    samples: Callable[[Samples], None] | None = None


class RecordsAttention(nn.Module):
    """Base of modules that compute attention weights and report them to listeners."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Listener] = []

    @property
    def is_recording(self) -> bool:
        """Whether a listener needs the weights, which rules out the fused path."""
        return any(listener.weights is not None for listener in self.listeners)

    @property
    def is_recording_samples(self) -> bool:
        """Whether a listener needs the samples of a stochastic alignment."""
        return any(listener.samples is not None for listener in self.listeners)

    def record(self, weights: Tensor, samples: Samples | None = None) -> None:
        """Pass the weights of this call, and its samples if there are some, to the listeners."""
        for listener in self.listeners:
            if listener.weights is not None:
                listener.weights(weights)
            if listener.samples is not None and samples is not None:
                listener.samples(samples)


@contextmanager
def attached(listeners: dict[RecordsAttention, Listener]) -> Iterator[None]:
    """Attach each listener to its module inside the block."""
    for module, listener in listeners.items():
        module.listeners.append(listener)
    try:
        yield
    finally:
        for module, listener in listeners.items():
            module.listeners.remove(listener)


@contextmanager
def recording(model: nn.Module, *, gradients: bool = False) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights of every attention module inside the block.

    Yields a dictionary from module name to the weights of each call: [B, H, T, S], or [B, H, E]
    over the edges of a graph. Weights are detached unless ``gradients`` is true. Fused paths are
    not used while weights are recorded.
    """
    found = {name: m for name, m in model.named_modules() if isinstance(m, RecordsAttention)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}

    def keep(calls: list[Tensor]) -> Callable[[Tensor], None]:
        return lambda weights: calls.append(weights if gradients else weights.detach())

    with attached({m: Listener(weights=keep(log[name])) for name, m in found.items()}):
        yield log
