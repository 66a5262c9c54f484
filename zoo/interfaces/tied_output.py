"""Logits of an output layer that is tied to an embedding table."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def tied_logits(states: Tensor, table: Tensor, padding: int | None) -> Tensor:
    """Compute logits [..., V] of states [..., D] with an embedding table [V, D].

    The row of the padding token receives no gradient, as in `torch.nn.Embedding`, so it stays zero
    in training.
    """
    return F.linear(states, freeze_row(table, padding))


def freeze_row(table: Tensor, row: int | None) -> Tensor:
    """Return the table [V, D], of which one row receives no gradient."""
    if row is None or not torch.is_grad_enabled() or not table.requires_grad:
        return table
    trained = torch.arange(table.shape[0], device=table.device) != row
    return torch.where(trained[:, None], table, table.detach())
