"""Selection of the path that computes the log-likelihood of CTC."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.plugin import full_precision, why_not_triton
from zoo_ctc.lattice import build_lattice, validate_labels
from zoo_ctc.likelihood import likelihood
from zoo_ctc.native_likelihood import native_likelihood

MAX_LABELS = 4095
"""Maximum number of labels of the Triton kernel, which holds the states of an item in registers."""


def log_likelihood(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int
) -> Tensor:
    """Compute the log-probability [B] of the labels on the fastest path that applies.

    It is -inf, with zero gradient, for an item without a path through the lattice. It is computed
    by a Triton kernel on a GPU, by torch's kernel on the CPU, and by `likelihood` elsewhere.

    Shapes:
        logits [B, T, V]; mask [B, T], True for valid frames; targets, target_mask [B, U], valid
        labels first.
    """
    vocab = logits.shape[-1]
    validate_labels(targets, target_mask, blank=blank, vocab=vocab)
    if _can_use_triton(logits, targets):
        from zoo_ctc.kernels.fused_likelihood import fused_likelihood

        return fused_likelihood(logits, mask, targets, target_mask, blank=blank)
    if _can_use_native(logits, mask):
        return native_likelihood(logits, mask, targets, target_mask, blank=blank)
    lattice = build_lattice(targets, target_mask, blank=blank, vocab=vocab)
    return likelihood(full_precision(logits).log_softmax(dim=-1), mask, lattice)


def _can_use_triton(logits: Tensor, targets: Tensor) -> bool:
    # The kernel sums the posteriors of equal labels in no fixed order.
    return (
        why_not_triton(logits, targets) is None
        and logits.numel() > 0
        and targets.shape[1] <= MAX_LABELS
        and not torch.are_deterministic_algorithms_enabled()
    )


def _can_use_native(logits: Tensor, mask: Tensor) -> bool:
    """Return whether the tensors are on the CPU, valid frames come first and logits are finite."""
    if torch.compiler.is_compiling() or logits.device.type != "cpu" or not logits.numel():
        return False
    # Torch's kernel returns NaN gradients for labels of probability 0.
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any()) and bool(logits.isfinite().all())
