"""Looking inside: attention weights on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn


class Recorded(nn.Module):
    """A module that looks somewhere, and reports where while somebody records."""

    recorder: list[Tensor] | None = None

    def record(self, weights: Tensor) -> None:
        """Keep the weights of this call, if anybody asked for them."""
        if self.recorder is not None:
            self.recorder.append(weights.detach())


@contextmanager
def recording(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Every attention inside the model reports its weights while the block runs.

    Gives, for each attention by its name in the model, the weights of each call: [B, H, T, S], or
    [B, H, E] over the edges of a graph. Outside such a block nothing is kept, and fused paths are
    free to run.
    """
    found = {name: m for name, m in model.named_modules() if isinstance(m, Recorded)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}
    for name, attention in found.items():
        attention.recorder = log[name]
    try:
        yield log
    finally:
        for attention in found.values():
            attention.recorder = None
