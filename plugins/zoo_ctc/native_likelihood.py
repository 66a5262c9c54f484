"""The log-likelihood of CTC with torch's kernel for the CPU."""

from __future__ import annotations

import torch
from torch import Tensor


def native_likelihood(
    logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor, *, blank: int
) -> Tensor:
    """Compute the log-probability [B] of the labels with torch's kernel, as `likelihood` does.

    It is computed in float64: torch does not rescale the variables, and float32 gives errors of
    a few percent in the gradient of a thousand frames. `torch.nn.functional.ctc_loss` does not
    distinguish items without a path from a loss of 0 if their gradient is set to zero, so its
    inner function is used.

    Shapes:
        logits [B, T, V], finite and not empty; mask [B, T], valid frames first; targets,
        target_mask [B, U], valid labels first.
    """
    losses, _ = torch._ctc_loss(
        logits.double().log_softmax(dim=-1).transpose(0, 1),
        targets.long(),
        mask.sum(dim=1),
        target_mask.sum(dim=1),
        blank=blank,
        zero_infinity=True,
    )
    return -losses.to(torch.promote_types(logits.dtype, torch.float32))
