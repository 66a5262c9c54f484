"""Doubly stochastic attention objective."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, full_precision


class DoublyStochastic(Objective):
    r"""Cross-entropy with a penalty on regions whose attention weights do not sum to 1.

    .. math::
        L = \frac{1}{N} \sum_i \Big[ -\sum_t \log p(y_{it})
            + \lambda \sum_j \Big(1 - \sum_t \alpha_{itj}\Big)^2 \Big]

    Paper: Xu et al. 2015, equation 14 of section 4.2.1. N is the number of targets that are not
    masked, so that lambda = 0 gives the mean cross-entropy.

    Args:
        weight: weight of the penalty, lambda.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T], extras looks [B, T, S] and source_mask
        [B, S], which `seq2seq` gives with looks: true -> scalar; 0 where nothing counts.
    """

    name: ClassVar[str] = "doubly-stochastic"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(self, *, weight: Annotated[float, Field(ge=0)] = 1.0) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # [B, T]
        looks = outputs.get_extra("looks", self.name).to(logits.dtype)
        real = outputs.get_extra("source_mask", self.name) & outputs.mask.any(dim=1)[:, None]
        looked = looks.where(outputs.mask[..., None], 0.0).sum(dim=1)  # [B, S]
        penalty = (1 - looked).square().where(real, 0.0).sum()
        total = losses.where(outputs.mask, 0.0).sum() + self.weight * penalty
        return total / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        looks, real = outputs.extras["looks"], outputs.extras["source_mask"]
        total, counted = 0.0, 0
        for item in range(outputs.targets.shape[0]):
            steps = [t for t in range(outputs.targets.shape[1]) if outputs.mask[item, t]]
            counted += len(steps)
            for t in steps:
                logprobs = outputs.logits[item, t].double().log_softmax(dim=-1)
                total -= logprobs[outputs.targets[item, t]].item()
            for j in range(looks.shape[2]):
                if steps and real[item, j]:
                    looked = sum(looks[item, t, j].item() for t in steps)
                    total += self.weight * (1 - looked) ** 2
        return total / max(counted, 1)

    def examples(self) -> Sequence[Outputs]:
        generator = torch.Generator("cpu").manual_seed(0)
        here = torch.empty(0).device

        def draw(*shape: int) -> Tensor:
            drawn = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
            return drawn.to(here)

        mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
        real = torch.arange(6) < torch.tensor([[6], [3], [5]])
        looks = draw(3, 4, 6).masked_fill(~real[:, None], -torch.inf).softmax(dim=-1)
        targets = torch.randint(0, 5, (3, 4), generator=generator, device="cpu").to(here)
        extras = {"looks": looks, "source_mask": real}
        return [Outputs(draw(3, 4, 5), targets, mask, extras=extras)]
