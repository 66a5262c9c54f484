"""Learning where to look by chance: what was drawn, for objectives that reward it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from zoo.attention.attention import Attention
from zoo.errors import ZooError
from zoo.interfaces import Alignment, Samples


@dataclass(frozen=True)
class SampleLog:
    """What each drawing attention drew, call by call: choices [B, H, T], with gradients."""

    calls: dict[str, list[Samples]]

    def total(self) -> Samples | None:
        """Calls one after another, heads and attentions added up: [B, T]; None if none drew.

        Every attention must have answered the same number of queries, one a target step.
        """
        drawn = [calls for calls in self.calls.values() if calls]
        if not drawn:
            return None
        logprobs = [torch.cat([c.logprob.sum(dim=1) for c in calls], dim=1) for calls in drawn]
        entropies = [torch.cat([c.entropy.sum(dim=1) for c in calls], dim=1) for calls in drawn]
        return Samples(torch.stack(logprobs).sum(dim=0), torch.stack(entropies).sum(dim=0))


def find_stochastic(module: nn.Module) -> Alignment | None:
    """The first alignment inside the module that draws where to look, if there is one."""
    for inner in module.modules():
        if isinstance(inner, Attention) and inner.align.is_stochastic:
            return inner.align
    return None


def forbid_stochastic(part: nn.Module, what: str) -> None:
    """Raise if a part draws where it looks and nobody hears of it, so that it could not learn."""
    drawn = find_stochastic(part)
    if drawn is not None:
        raise ZooError(
            f"alignment '{drawn.name}' draws where {what} looks, of which no objective hears; "
            "let a gradient pass it (straight_through: true) or choose another"
        )


@contextmanager
def record_samples(model: nn.Module) -> Iterator[SampleLog]:
    """Every attention inside the model that draws reports its choices while the block runs.

    Outside such a block nothing is kept.
    """
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, Attention) and module.align.is_stochastic
    }
    log = SampleLog({name: [] for name in found})
    for name, attention in found.items():
        attention.sample_log = log.calls[name]
    try:
        yield log
    finally:
        for attention in found.values():
            attention.sample_log = None
