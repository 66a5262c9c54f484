"""Negative sampling loss."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class NegativeSampling(Objective):
    r"""Negative sampling: logistic loss of the target and K negative samples (noise words).

    .. math:: L = -\frac{1}{N} \sum_t \Big[ \log \sigma(z_{t y_t})
        + \sum_{v \ne y_t} \log \sigma(-z_{tv}) \Big]

    where z are the logits, and t runs over the N positions where the mask is True.

    Paper: Mikolov et al. 2013, equation 4.

    Shapes:
        logits [B, T, 1 + K] of the target and K noise words, targets [B, T] the index of the
        target among them, mask [B, T] -> scalar; 0 if no position is selected.
    """

    name: ClassVar[str] = "negative-sampling"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Distributed Representations of Words and Phrases, arXiv:1310.4546"
    )

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", logits="candidate", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        is_target = F.one_hot(targets, logits.shape[-1]).bool()
        losses = F.softplus(torch.where(is_target, -logits, logits)).sum(dim=-1)  # [B, T]
        return losses.where(outputs.mask, 0.0).sum() / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0
        for item, t in outputs.mask.nonzero().tolist():
            for v, logit in enumerate(outputs.logits[item, t].double()):
                sign = 1 if v == outputs.targets[item, t] else -1
                total -= (sign * logit).sigmoid().log().item()
            count += 1
        return total / max(count, 1)
