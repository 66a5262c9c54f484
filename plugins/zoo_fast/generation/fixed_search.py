"""Searches in tensors of fixed address, whose lengths are tensors on the device."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from zoo.generation.prompts import PromptBatch
from zoo.plugin import SearchState


@dataclass(frozen=True)
class FixedSearch(SearchState):
    """A search state whose ``cur_len`` is a tensor [] on the device, as captured steps need it.

    For samplers of known classes, ``task.max_length`` is one too.
    """

    cur_len: Tensor  # type: ignore[assignment]

    def last_tokens(self) -> Tensor:
        return self.tokens.index_select(-1, self.cur_len.view(1) - 1)[..., 0]

    def seen_tokens(self) -> Tensor:
        """Return as many tokens as fit [B, W, total_length]: the first one is repeated before the
        others."""
        length = self.tokens.shape[-1]
        index = torch.arange(length, device=self.tokens.device) + self.cur_len - length
        return self.tokens.index_select(-1, index.clamp(min=0))

    def write_next(self, tokens: Tensor, values: Tensor) -> None:
        tokens.index_copy_(-1, self.cur_len.view(1), values[..., None])


def to_scalar(number: int | Tensor, device: torch.device) -> Tensor:
    """Return a number as a tensor [] on a device."""
    if isinstance(number, Tensor):
        return number
    return torch.full((), number, dtype=torch.long, device=device)  # not copied from the host


@dataclass(frozen=True)
class FixedPrompts(PromptBatch):
    """Prompts for a `FixedSearch`."""

    @classmethod
    def of(cls, prompts: PromptBatch, suffix: Tensor) -> FixedPrompts:
        """Return prompts with another suffix."""
        values = {each.name: getattr(prompts, each.name) for each in fields(PromptBatch)}
        return cls(**values | {"suffix": suffix})

    def forced_tokens(self, cur_len: Tensor) -> Tensor:  # type: ignore[override]
        step = (cur_len - self.prefix.shape[1]).clamp(max=self.suffix.shape[1] - 1)
        return self.suffix.index_select(1, step.view(1))


@dataclass(frozen=True)
class RoomyPrompts(PromptBatch):
    """Prompts whose search may have more columns than needed, so that graphs are shared."""

    columns: int

    @classmethod
    def of(cls, prompts: PromptBatch, columns: int) -> RoomyPrompts:
        """Return prompts whose search has a number of columns."""
        values = {each.name: getattr(prompts, each.name) for each in fields(PromptBatch)}
        return cls(**values, columns=columns)

    @property
    def total_length(self) -> int:
        return self.columns
