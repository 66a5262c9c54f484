"""Tokens of a step that are copied to the host while the next step runs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from zoo.generation.loop import require_finite_score, require_valid
from zoo.generation.search import DecodeState


class StepTokens(NamedTuple):
    """The tokens [B, 1] of a step, on the CPU, and whether all items are done."""

    tokens: Tensor
    done: bool


class TokenCopy:
    """Copies the tokens of a step from a GPU without waiting for it.

    Args:
        tokens: [B, 1].
        state: the state after the step.
        done: which items are done, [B].
    """

    def __init__(self, tokens: Tensor, state: DecodeState, done: Tensor) -> None:
        self._scores = state.search.scores
        impossible = self._scores[:, 0].isneginf().any()
        values = torch.cat([torch.stack([state.invalid, done.all(), impossible]), tokens[:, 0]])
        self._copy = torch.empty(values.shape, dtype=values.dtype, device="cpu", pin_memory=True)
        self._copy.copy_(values, non_blocking=True)
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._event.record()

    def wait(self, step: int) -> StepTokens:
        """Wait for the copy; raise ZooError if a logit was NaN or inf, or no token is valid."""
        self._event.synchronize()
        invalid, done, impossible = self._copy[:3].tolist()
        require_valid(bool(invalid), step)
        if impossible:
            require_finite_score(self._scores)
        return StepTokens(self._copy[3:, None], bool(done))
