"""Looking inside: attention weights on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from zoo.attention.assembly import Attention


@contextmanager
def recording(model: nn.Module, *, gradients: bool = False) -> Iterator[dict[str, list[Tensor]]]:
    """Every attention inside the model reports its weights while the block runs.

    Gives, for each attention by its name in the model, the weights [B, H, T, S] of each call;
    with their gradients for a model that hands them to an objective, which a recording of the
    model from outside does not disturb. Outside such a block nothing is kept, and fused paths are
    free to run.
    """
    listener = "tracker" if gradients else "recorder"
    found = {name: m for name, m in model.named_modules() if isinstance(m, Attention)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}
    for name, attention in found.items():
        setattr(attention, listener, log[name])
    try:
        yield log
    finally:
        for attention in found.values():
            setattr(attention, listener, None)
