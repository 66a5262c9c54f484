"""Sigmoid loss of pairs."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision
from zoo_objectives.contrastive import pair_examples


class SigmoidContrastive(Objective):
    r"""Sigmoid loss of all pairs of a source and a target of the batch, each independent.

    .. math:: L = -\frac{1}{N} \sum_{i, j} \log \sigma(s_{ij} z_{ij}), \qquad
        s_{ij} = 1 \text{ if } j = y_i \text{, else } -1

    Paper: Zhai et al. 2023 (the sigmoid loss).

    Shapes:
        logits [B, T, C], of each source and all C targets of the batch, targets [B, T], mask [B, T]
        -> scalar; 0 if all positions are masked.
    """

    name: ClassVar[str] = "sigmoid-contrastive"
    paper: ClassVar[str] = (
        "Zhai et al. 2023, Sigmoid Loss for Language Image Pre-Training, arXiv:2303.15343"
    )

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", logits="candidate", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        sign = 2 * F.one_hot(targets, logits.shape[-1]).to(logits) - 1
        losses = -F.logsigmoid(sign * logits).sum(dim=-1)  # [B, T]
        return losses.where(outputs.mask, 0.0).sum() / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0
        for item, t in outputs.mask.nonzero().tolist():
            for j, logit in enumerate(outputs.logits[item, t].double()):
                p = torch.sigmoid(logit)
                total -= (p if j == outputs.targets[item, t] else 1 - p).log().item()
            count += 1
        return total / max(count, 1)

    def examples(self) -> Sequence[Outputs]:
        return pair_examples()
