"""Recording of what stochastic parts sample: positions, or decisions to emit a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from zoo.attention.recorder import Recorder, RecordsAttention, attach
from zoo.errors import ZooError
from zoo.interfaces import Alignment, Samples


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
