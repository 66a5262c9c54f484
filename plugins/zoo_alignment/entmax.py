"""Entmax alignment."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import expand_mask, shift_and_sort


class Entmax(Alignment):
    r"""1.5-entmax of the scores: sparse, between softmax and sparsemax.

    .. math::
        \alpha_s = [z_s / 2 - \tau(z)]_+^2, \qquad \sum_s \alpha_s = 1

    Paper: Peters et al. 2019, equation 12 with alpha = 1.5, and algorithm 2 (exact, by sorting).

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "entmax"
    paper: ClassVar[str] = (
        "Peters et al. 2019, Sparse Sequence-to-Sequence Models, arXiv:1905.05702"
    )

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        mask = expand_mask(scores, mask)
        z, z_sorted = shift_and_sort(scores / 2, mask)
        k = torch.arange(1, z_sorted.shape[-1] + 1, device=z_sorted.device, dtype=z_sorted.dtype)
        mean = z_sorted.cumsum(dim=-1) / k
        variance = z_sorted.square().cumsum(dim=-1) / k - mean.square()
        taus = mean - (1 / k - variance).clamp(min=0).sqrt()
        support_size = (taus <= z_sorted).sum(dim=-1, keepdim=True)  # [..., T, 1]
        support = mask & (z.detach() > taus.gather(-1, support_size - 1))
        # Recompute tau from the support, so that autograd gives the exact gradient.
        count = support.sum(dim=-1, keepdim=True).clamp(min=1)
        centre = z.masked_fill(~support, 0.0).sum(dim=-1, keepdim=True) / count
        square = (z - centre).masked_fill(~support, 0.0).square().sum(dim=-1, keepdim=True)
        tau = centre - ((1 - square) / count).sqrt()
        return (z - tau).masked_fill(~support, 0.0).square()
