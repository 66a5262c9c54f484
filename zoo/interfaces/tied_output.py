"""Logits of an output layer that is tied to an embedding table."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.device.packed_linear import linear


def tied_logits(states: Tensor, table: Tensor, padding: int | None) -> Tensor:
    """Compute logits [..., V] of states [..., D] with an embedding table [V, D].

    The row of the padding token receives no gradient, as in `torch.nn.Embedding`, so it stays zero
    in training.
    """
    if padding is not None and torch.is_grad_enabled() and table.requires_grad:
        trained = torch.arange(table.shape[0], device=table.device) != padding
        table = torch.where(trained[:, None], table, table.detach())
    return linear(states, table)
