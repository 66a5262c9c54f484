"""Cross-entropy with optional label smoothing."""

from typing import Annotated, ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class CrossEntropy(Objective):
    r"""Mean cross-entropy of the targets, in nats, with optional label smoothing.

    .. math::
        L = -\frac{1}{N} \sum_t \Big[ (1 - \epsilon) \log p_t(y_t)
            + \frac{\epsilon}{V} \sum_v \log p_t(v) \Big]

    Paper: Szegedy et al. 2016, section 7 (label smoothing).

    Args:
        smoothing: probability mass, epsilon, spread evenly over the vocabulary.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T] -> scalar; 0 if all positions
        are masked.
    """

    name: ClassVar[str] = "cross-entropy"
    paper: ClassVar[str] = (
        "Szegedy et al. 2016, Rethinking the Inception Architecture, arXiv:1512.00567"
    )

    def __init__(self, *, smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        losses = F.cross_entropy(
            logits.flatten(0, 1),
            outputs.targets.where(outputs.mask, 0).flatten(),
            label_smoothing=self.smoothing,
            reduction="none",
        )
        valid = outputs.mask.flatten()
        return losses.where(valid, 0.0).sum() / valid.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0
        for item in range(outputs.targets.shape[0]):
            for t in range(outputs.targets.shape[1]):
                if not outputs.mask[item, t]:
                    continue
                logprobs = outputs.logits[item, t].double().log_softmax(dim=-1)
                target_logprob = logprobs[outputs.targets[item, t]].item()
                mean_logprob = logprobs.mean().item()
                total -= (1 - self.smoothing) * target_logprob + self.smoothing * mean_logprob
                count += 1
        return total / max(count, 1)
