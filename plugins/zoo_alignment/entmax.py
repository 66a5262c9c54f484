"""Entmax with alpha = 1.5: between softmax and sparsemax."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Alignment, Look
from zoo_alignment.masking import levelled, opened


class Entmax(Alignment):
    r"""Gives weak keys no weight and strong ones a smooth share (1.5-entmax).

    .. math::
        \alpha_s = [z_s / 2 - \tau(z)]_+^2, \qquad \sum_s \alpha_s = 1

    Paper: Peters et al. 2019, equation 12 with alpha = 1.5 and algorithm 2, exact by sorting.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "entmax"
    paper: ClassVar[str] = (
        "Peters et al. 2019, Sparse Sequence-to-Sequence Models, arXiv:1905.05702"
    )

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        mask = opened(scores, mask)
        z, down = levelled(scores / 2, mask)
        k = torch.arange(1, down.shape[-1] + 1, device=down.device, dtype=down.dtype)
        mean = down.cumsum(dim=-1) / k
        spread = down.square().cumsum(dim=-1) / k - mean.square()
        taus = mean - (1 / k - spread).clamp(min=0).sqrt()
        size = (taus <= down).sum(dim=-1, keepdim=True)  # [..., T, 1]
        support = mask & (z.detach() > taus.gather(-1, size - 1))
        # tau again, from the support alone: that carries the exact gradient.
        count = support.sum(dim=-1, keepdim=True).clamp(min=1)
        centre = z.masked_fill(~support, 0.0).sum(dim=-1, keepdim=True) / count
        square = (z - centre).masked_fill(~support, 0.0).square().sum(dim=-1, keepdim=True)
        tau = centre - ((1 - square) / count).sqrt()
        return (z - tau).masked_fill(~support, 0.0).square()
