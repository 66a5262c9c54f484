"""Logits of an output layer that is tied to an embedding table."""

from __future__ import annotations

from torch import Tensor

from zoo.interfaces.deferred_logits import compute_logits


def tied_logits(states: Tensor, table: Tensor, padding: int | None) -> Tensor:
    """Compute logits [..., V] of states [..., D] with an embedding table [V, D].

    The row of the padding token receives no gradient, as in `torch.nn.Embedding`, so it stays zero
    in training.
    """
    return compute_logits(states, table, padding=padding)
