"""Negative sampling: the true word against a few drawn ones."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, full_precision


class NegativeSampling(Objective):
    r"""The mean surprise at telling the true word from those drawn beside it.

    .. math:: L = -\frac{1}{N} \sum_t \Big[ \log \sigma(z_{t y_t})
        + \sum_{v \ne y_t} \log \sigma(-z_{tv}) \Big]

    Paper: Mikolov et al. 2013, equation 4.

    Shapes:
        logits [B, T, 1 + K] of the true word and of K drawn ones, targets [B, T], which of them
        is true, mask [B, T] -> scalar; 0 where nothing counts.
    """

    name: ClassVar[str] = "negative-sampling"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Distributed Representations of Words and Phrases, arXiv:1310.4546"
    )

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        is_true = F.one_hot(targets, logits.shape[-1]).bool()
        surprise = F.softplus(torch.where(is_true, -logits, logits)).sum(dim=-1)  # [B, T]
        return surprise.where(outputs.mask, 0.0).sum() / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        total, counted = 0.0, 0
        for item, t in outputs.mask.nonzero().tolist():
            for v, logit in enumerate(outputs.logits[item, t].double()):
                sign = 1 if v == outputs.targets[item, t] else -1
                total -= (sign * logit).sigmoid().log().item()
            counted += 1
        return total / max(counted, 1)
