"""Searches in tensors of fixed address, whose length is a tensor on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.generation.prompts import PromptBatch
from zoo.plugin import SearchState


@dataclass(frozen=True)
class FixedSearch(SearchState):
    """A search state whose ``cur_len`` is a tensor [] on the device, as captured steps need it."""

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


@dataclass(frozen=True)
class FixedPrompts(PromptBatch):
    """Prompts for a `FixedSearch`."""

    def forced_tokens(self, cur_len: Tensor) -> Tensor:  # type: ignore[override]
        step = (cur_len - self.prefix.shape[1]).clamp(max=self.suffix.shape[1] - 1)
        return self.suffix.index_select(1, step.view(1))
