"""Doubly stochastic attention objective."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class DoublyStochastic(Objective):
    r"""Cross-entropy with a penalty on regions whose weights do not sum to 1 over target steps.

    .. math::
        L = \frac{1}{N} \sum_i \Big[ -\sum_t \log p(y_{it})
            + \lambda \sum_j \Big(1 - \sum_t \alpha_{itj}\Big)^2 \Big]

    Paper: Xu et al. 2015, equation 14 of section 4.2.1. N is the number of targets that are not
    masked, so that lambda = 0 gives the mean cross-entropy.

    Args:
        weight: weight of the penalty, lambda.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T], extras attention_weights [B, T, S] and
        source_mask [B, S], which `seq2seq` returns with return_attention: true -> scalar; 0 if all
        targets are masked.
    """

    name: ClassVar[str] = "doubly-stochastic"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(self, *, weight: Annotated[float, Field(ge=0)] = 1.0) -> None:
        super().__init__()
        self.penalty_weight = weight

    def required_outputs(self) -> OutputRequirement:
        extras = ("attention_weights", "source_mask")
        return OutputRequirement(targets="class", extras=extras, uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # [B, T]
        weights = outputs.get_extra("attention_weights", self.name).to(logits.dtype)
        valid = outputs.get_extra("source_mask", self.name) & outputs.mask.any(dim=1)[:, None]
        coverage = weights.where(outputs.mask[..., None], 0.0).sum(dim=1)  # [B, S]
        penalty = (1 - coverage).square().where(valid, 0.0).sum()
        total = losses.where(outputs.mask, 0.0).sum() + self.penalty_weight * penalty
        return total / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        weights, valid = outputs.extras["attention_weights"], outputs.extras["source_mask"]
        total, count = 0.0, 0
        for item in range(outputs.targets.shape[0]):
            steps = [t for t in range(outputs.targets.shape[1]) if outputs.mask[item, t]]
            count += len(steps)
            for t in steps:
                logprobs = outputs.logits[item, t].double().log_softmax(dim=-1)
                total -= logprobs[outputs.targets[item, t]].item()
            for j in range(weights.shape[2]):
                if steps and valid[item, j]:
                    coverage = sum(weights[item, t, j].item() for t in steps)
                    total += self.penalty_weight * (1 - coverage) ** 2
        return total / max(count, 1)

    def examples(self) -> Sequence[Outputs]:
        generator = torch.Generator("cpu").manual_seed(0)
        device = torch.empty(0).device

        def randn(*shape: int) -> Tensor:
            values = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
            return values.to(device)

        mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
        valid = torch.arange(6) < torch.tensor([[6], [3], [5]])
        weights = randn(3, 4, 6).masked_fill(~valid[:, None], -torch.inf).softmax(dim=-1)
        targets = torch.randint(0, 5, (3, 4), generator=generator, device="cpu").to(device)
        extras = {"attention_weights": weights, "source_mask": valid}
        return [Outputs(randn(3, 4, 5), targets, mask, extras=extras)]
