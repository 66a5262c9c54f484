"""Looking inside: attention weights on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn


class RecordsAttention(nn.Module):
    """A module that looks somewhere, and reports where while somebody records."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder: list[Tensor] | None = None
        self.grad_recorder: list[Tensor] | None = None  # like the recorder, with gradients

    @property
    def is_recording(self) -> bool:
        """Whether anybody asks for weights."""
        return self.recorder is not None or self.grad_recorder is not None

    def record(self, weights: Tensor) -> None:
        """Keep the weights of this call, if anybody asked for them."""
        if self.recorder is not None:
            self.recorder.append(weights.detach())
        if self.grad_recorder is not None:
            self.grad_recorder.append(weights)


@contextmanager
def recording(model: nn.Module, *, gradients: bool = False) -> Iterator[dict[str, list[Tensor]]]:
    """Every attention inside the model reports its weights while the block runs.

    Gives, for each attention by its name in the model, the weights of each call: [B, H, T, S], or
    [B, H, E] over the edges of a graph; with their gradients for a model that hands them to an
    objective, which a recording of the model from outside does not disturb. Outside such a block
    nothing is kept, and fused paths are free to run.
    """
    listener = "tracker" if gradients else "recorder"
    found = {name: m for name, m in model.named_modules() if isinstance(m, RecordsAttention)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}
    for name, attention in found.items():
        setattr(attention, listener, log[name])
    try:
        yield log
    finally:
        for attention in found.values():
            setattr(attention, listener, None)
