"""The path that an attention takes: fused, or the reference path with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from zoo.attention import RecordsAttention


@dataclass(frozen=True)
class AttentionPath:
    """The path of an attention on a device.

    Args:
        device: 'cuda' if a GPU is available, else 'cpu'.
        evaluation: reason for the reference path in evaluation mode; None if a fused path is used.
        training: reason for the reference path in training mode; None if a fused path is used.
    """

    device: str
    evaluation: str | None
    training: str | None

    def describe(self) -> str:
        """Return the path and the reason in one line."""
        if self.evaluation == self.training:
            return f"{_describe(self.evaluation)}, on {self.device}"
        return (
            f"{_describe(self.evaluation)}, in training {_describe(self.training)}, "
            f"on {self.device}"
        )


def find_attention_path(part: Any, *, weights_used: bool) -> AttentionPath | None:
    """Return the path of a part on this machine, in both modes; None if it is not an attention.

    Args:
        weights_used: whether the model uses the attention weights, not only the contexts.
    """
    if not isinstance(part, RecordsAttention):
        return None
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    was_training = part.training
    used = "the model uses the attention weights" if weights_used else None
    training, evaluation = (
        part.train(mode).why_not_fused(device) or used for mode in (True, False)
    )
    part.train(was_training)
    return AttentionPath(device.type, evaluation, training)


def _describe(reason: str | None) -> str:
    return "fused path" if reason is None else f"reference path ({reason})"
