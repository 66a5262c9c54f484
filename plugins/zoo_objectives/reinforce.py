"""REINFORCE for models that sample attention positions."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class Reinforce(Objective):
    r"""Cross-entropy, with the REINFORCE gradient for sampled attention positions.

    .. math::
        L = \frac{1}{N} \sum_i \Big[ \ell_i
            + \lambda_r (\ell_i - b) \log p(\tilde s_i) - \lambda_e H[\tilde s_i] \Big],
        \qquad \ell_i = -\sum_t \log p(y_{it} \mid \tilde s_i)

        b \leftarrow \gamma b + (1 - \gamma) \tfrac{1}{B} \textstyle\sum_i \ell_i

    The factor of log p is detached. N is the number of targets that are not masked, so with
    lambda_r = 1 and lambda_e = 0 the expected gradient is that of the expected cross-entropy. In
    evaluation mode the loss is the cross-entropy given what the model samples or selects.

    Paper: Xu et al. 2015, equations 12 to 14. The baseline b is a moving average of the negative
    log-likelihood; it is updated in training mode only, after its use, so with gradient
    accumulation after each part of a batch. Without samples the loss is the cross-entropy.

    Args:
        lambda_r: weight of the reward.
        lambda_e: weight of the entropy of the sampled positions.
        gamma: decay of the baseline.
        reward_to_go: the factor of log p of target t is the sum of the losses of targets t and
            later, minus the same fraction of the baseline (Luo et al. 2016, section 2.1): a sample
            does not change the losses of earlier targets.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T], samples [B, T] -> scalar; 0 if all
        positions are masked.
    """

    name: ClassVar[str] = "reinforce"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )
    baseline: Tensor

    def __init__(
        self,
        *,
        lambda_r: Annotated[float, Field(ge=0)] = 1.0,
        lambda_e: Annotated[float, Field(ge=0)] = 0.01,
        gamma: Annotated[float, Field(ge=0, lt=1)] = 0.9,
        reward_to_go: bool = False,
    ) -> None:
        super().__init__()
        self.lambda_r = lambda_r
        self.lambda_e = lambda_e
        self.gamma = gamma
        self.reward_to_go = reward_to_go
        self.register_buffer("baseline", torch.zeros(()))

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=("samples",))

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        targets = outputs.targets.where(outputs.mask, 0)
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # [B, T]
        nll = losses.where(outputs.mask, 0.0).sum(dim=1)  # [B]
        loss = nll
        if self.training and outputs.samples is not None:
            logprob = outputs.samples.logprob.where(outputs.mask, 0.0)  # [B, T]
            entropy = outputs.samples.entropy.where(outputs.mask, 0.0).sum(dim=1)
            advantage = self._advantage(losses.detach().where(outputs.mask, 0.0), outputs.mask)
            reward = (advantage * logprob).sum(dim=1)
            loss = nll + self.lambda_r * reward - self.lambda_e * entropy
            self._update_baseline(nll.detach(), outputs.mask.any(dim=1))
        return loss.sum() / outputs.mask.sum().clamp(min=1)

    def _advantage(self, losses: Tensor, mask: Tensor) -> Tensor:
        """Return the factor of each log-probability [B, T], given losses [B, T], 0 if masked."""
        # The backward pass needs the value from before the baseline is updated.
        baseline = self.baseline.clone()
        if not self.reward_to_go:
            return (losses.sum(dim=1, keepdim=True) - baseline).expand_as(losses)
        future, remaining = (x.flip(1).cumsum(dim=1).flip(1) for x in (losses, mask.to(losses)))
        return future - baseline * remaining / remaining[:, :1].clamp(min=1)

    @torch.no_grad()
    def _update_baseline(self, nll: Tensor, valid: Tensor) -> None:
        """Update the baseline with nll [B] of the valid items [B]; others are ignored."""
        mean = nll.sum() / valid.sum().clamp(min=1)
        updated = self.gamma * self.baseline + (1 - self.gamma) * mean
        self.baseline.copy_(torch.where(valid.any(), updated, self.baseline))

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0
        for item in range(outputs.targets.shape[0]):
            steps = outputs.mask[item].nonzero()[:, 0].tolist()
            rows = outputs.logits[item].double().log_softmax(dim=-1)
            losses = [-rows[t, outputs.targets[item, t]].item() for t in steps]
            total, count = total + sum(losses), count + len(steps)
            if outputs.samples is None or not self.training:
                continue
            for index, t in enumerate(steps):
                first = index if self.reward_to_go else 0
                baseline = self.baseline.item() * (len(steps) - first) / len(steps)
                advantage = sum(losses[first:]) - baseline
                total += self.lambda_r * advantage * outputs.samples.logprob[item, t].item()
                total -= self.lambda_e * outputs.samples.entropy[item, t].item()
        return total / max(count, 1)
