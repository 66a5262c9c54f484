"""The hybrid REINFORCE objective."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class HybridReinforce(Objective):
    r"""Hybrid REINFORCE: cross-entropy, plus a policy gradient with a learned baseline.

    .. math::
        L = \frac{1}{N} \sum_i \Big[ \ell_i
            - \lambda_r \sum_t (R_i - b_{it}) \log \pi(l_{it})
            + \lambda_b \sum_t (R_i - b_{it})^2 \Big], \qquad
        R_i = [\text{the most probable class is correct}]

    No gradient flows through the factor of log pi, so the gradient is an unbiased estimate of that
    of the expected reward; a baseline b computed before the location is sampled adds no bias. N is
    the number of items with at least one valid position; an item with several targets is
    rewarded if all valid ones are correct. In evaluation mode the loss is the mean of l_i, the
    cross-entropy of an item.

    Paper: Mnih et al. 2014, section 3.1.

    Args:
        lambda_r: weight of the reward.
        lambda_b: weight of the baseline's squared error.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T], extras logprob and baselines [B, G] ->
        scalar; 0 if all positions are masked.
    """

    name: ClassVar[str] = "hybrid-reinforce"
    paper: ClassVar[str] = "Mnih et al. 2014, Recurrent Models of Visual Attention, arXiv:1406.6247"

    def __init__(
        self,
        *,
        lambda_r: Annotated[float, Field(ge=0)] = 1.0,
        lambda_b: Annotated[float, Field(ge=0)] = 1.0,
    ) -> None:
        super().__init__()
        self.lambda_r = lambda_r
        self.lambda_b = lambda_b

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", extras=("logprob", "baselines"), uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # [B, T]
        loss = losses.where(outputs.mask, 0.0).sum(dim=1)  # [B]
        if self.training:
            loss = loss + self._policy_loss(logits, targets, outputs)
        valid_items = outputs.mask.any(dim=1)
        return loss.where(valid_items, 0.0).sum() / valid_items.sum().clamp(min=1)

    def _policy_loss(self, logits: Tensor, targets: Tensor, outputs: Outputs) -> Tensor:
        """Return the terms [B] that train policy and baseline."""
        correct = (logits.argmax(dim=-1) == targets) | ~outputs.mask
        reward = correct.all(dim=1, keepdim=True).to(logits)  # [B, 1]
        error = reward - outputs.get_extra("baselines", self.name)  # [B, G]
        policy = (error.detach() * outputs.get_extra("logprob", self.name)).sum(dim=1)
        return self.lambda_b * error.square().sum(dim=1) - self.lambda_r * policy

    def weight(self, outputs: Outputs) -> Tensor:
        return outputs.mask.any(dim=1).sum()

    def reference(self, outputs: Outputs) -> float:
        logprobs, baselines = outputs.extras["logprob"], outputs.extras["baselines"]
        total, valid_items = 0.0, 0
        for item in range(outputs.targets.shape[0]):
            steps = [t for t in range(outputs.targets.shape[1]) if outputs.mask[item, t]]
            if not steps:
                continue
            valid_items += 1
            reward = 1.0
            for t in steps:
                p = outputs.logits[item, t].double().softmax(dim=-1)
                target = int(outputs.targets[item, t])
                total -= p[target].log().item()
                if any(q > p[target] for q in p):
                    reward = 0.0
            if not self.training:
                continue
            for logprob, b in zip(logprobs[item].tolist(), baselines[item].tolist(), strict=True):
                total -= self.lambda_r * (reward - b) * logprob
                total += self.lambda_b * (reward - b) ** 2
        return total / max(valid_items, 1)

    def examples(self) -> Sequence[Outputs]:
        device = torch.empty(0).device
        generator = torch.Generator("cpu").manual_seed(0)

        def noise(*shape: int) -> Tensor:
            samples = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
            return samples.to(device)

        batches = []
        for steps in (1, 3):
            logits = noise(4, steps, 5)
            targets = logits.argmax(dim=-1)
            targets[1:3] = (targets[1:3] + 1) % 5  # two items incorrect, two correct
            mask = torch.ones_like(targets, dtype=torch.bool)
            mask[2] = False
            mask[3, 1:] = False
            extras = {"logprob": noise(4, 2), "baselines": noise(4, 2)}
            batches.append(Outputs(logits, targets, mask, extras=extras))
        return batches
