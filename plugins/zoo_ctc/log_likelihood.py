"""Selection of the path that computes the log-likelihood of CTC."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.plugin import full_precision, why_not_triton
from zoo_ctc.lattice import build_lattice, validate_labels
from zoo_ctc.likelihood import likelihood
from zoo_ctc.scaled_likelihood import scaled_likelihood

MAX_LABELS = 4095
"""Maximum number of labels of the Triton kernel, which holds the states of an item in registers."""


def log_likelihood(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int
) -> Tensor:
    """Compute the log-probability [B] of the labels on the fastest path that applies.

    It is -inf, with zero gradient, for an item without a path through the lattice. It is computed
    by a Triton kernel on a GPU, by `scaled_likelihood` on the CPU, and by `likelihood` elsewhere.

    Shapes:
        logits [B, T, V]; mask [B, T], True for valid frames; targets, target_mask [B, U], valid
        labels first.
    """
    vocab = logits.shape[-1]
    validate_labels(targets, target_mask, blank=blank, vocab=vocab)
    if _can_use_triton(logits, targets):
        from zoo_ctc.kernels.fused_likelihood import fused_likelihood

        return fused_likelihood(logits, mask, targets, target_mask, blank=blank)
    lattice = build_lattice(targets, target_mask, blank=blank, vocab=vocab)
    logits = full_precision(logits)
    total = scaled_likelihood(logits, mask, lattice) if _can_use_scaled(logits, mask) else None
    if total is None:
        total = likelihood(logits.log_softmax(dim=-1), mask, lattice)
    return total


def _can_use_triton(logits: Tensor, targets: Tensor) -> bool:
    # The kernel sums the posteriors of equal labels in no fixed order.
    return (
        why_not_triton(logits, targets) is None
        and logits.numel() > 0
        and targets.shape[1] <= MAX_LABELS
        and not torch.are_deterministic_algorithms_enabled()
    )


def _can_use_scaled(logits: Tensor, mask: Tensor) -> bool:
    """Return whether the tensors are on the CPU and valid frames come first."""
    # Subclasses, such as tensors without values, have no numpy array.
    if torch.compiler.is_compiling() or type(logits) is not Tensor:
        return False
    if logits.device.type != "cpu" or not logits.numel():
        return False
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())
