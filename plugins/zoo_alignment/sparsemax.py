"""Sparsemax alignment."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import expand_mask, shift_and_sort


class Sparsemax(Alignment):
    r"""Sparsemax: Euclidean projection of the scores onto the simplex, with sparse weights.

    .. math::
        \alpha_s = [z_s - \tau(z)]_+, \qquad
        \tau(z) = \frac{\sum_{s \in S(z)} z_s - 1}{|S(z)|}, \qquad
        k(z) = \max \{ k : 1 + k z_{(k)} > \textstyle\sum_{j \le k} z_{(j)} \}

    Paper: Martins and Astudillo 2016, equation 4 and algorithm 1 (exact, by sorting); the
    support S(z) is the k(z) highest scores.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "sparsemax"
    paper: ClassVar[str] = (
        "Martins and Astudillo 2016, From Softmax to Sparsemax: A Sparse Model of Attention and "
        "Multi-Label Classification, arXiv:1602.02068"
    )

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        mask = expand_mask(scores, mask)
        z, z_sorted = shift_and_sort(scores, mask)
        k = torch.arange(1, z_sorted.shape[-1] + 1, device=z_sorted.device, dtype=z_sorted.dtype)
        total = z_sorted.cumsum(dim=-1)
        support_size = (1 + k * z_sorted > total).sum(dim=-1, keepdim=True)  # [..., T, 1]
        threshold = (total.gather(-1, support_size - 1) - 1) / support_size
        support = mask & (z.detach() > threshold)
        # Recompute tau from the support, so that autograd gives the exact gradient.
        count = support.sum(dim=-1, keepdim=True).clamp(min=1)
        tau = (z.masked_fill(~support, 0.0).sum(dim=-1, keepdim=True) - 1) / count
        return (z - tau).masked_fill(~support, 0.0)
