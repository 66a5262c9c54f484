"""Sampler: log-probabilities to tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from zoo.interfaces.component import Component
from zoo.interfaces.data import Selection


class Sampler(Component, ABC):
    """Chooses how generation goes on, on the device, without asking the host.

    The decoding loop keeps finished hypotheses finished: it offers them one token only.

    Laws:
        seeded draws repeat; draws follow the stated distribution; finished hypotheses stay
        finished; an impossible token is never chosen.

    Attributes:
        width: how many hypotheses are kept for each item.
    """

    kind: ClassVar[str] = "sampler"
    width: int = 1

    @abstractmethod
    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        """logprobs [B, W, V] of each hypothesis's next token, scores [B, W] so far."""

    def distribution(self, logprobs: Tensor) -> Tensor:
        """What each draw follows: logprobs [V] -> probabilities [V]; one-hot if certain."""
        chosen = self.select(logprobs[None, None], torch.zeros(1, 1, device=logprobs.device))
        return torch.nn.functional.one_hot(chosen.tokens[0, 0], logprobs.shape[-1]).to(logprobs)
